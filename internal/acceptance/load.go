package acceptance

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
)

// region is one region's callers and the agents they ask in turn.
type region struct {
	name   string
	agents []rationv1.LimitServiceClient

	mu        sync.Mutex
	decisions []decision
}

func dialAgent(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// inFlight bounds a region's open calls. The load is open-loop: what does not
// fit counts as failed, it is never held back.
const inFlight = 512

// demand is what one region's callers ask of one budget: requests per second
// at an instant of the run.
type demand struct {
	route string
	at    func(t time.Duration) float64
}

// drive sends requests as they would arrive by themselves, at random instants
// of the given density, until length has passed.
func (r *region) drive(ctx context.Context, start time.Time, length time.Duration, demands []demand, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	slots := make(chan struct{}, inFlight)
	var calls sync.WaitGroup
	defer calls.Wait()
	next := make([]time.Duration, len(demands))
	for n := 0; ctx.Err() == nil; {
		now := time.Since(start)
		if now >= length {
			return
		}
		for i, d := range demands {
			for next[i] <= now {
				next[i] += time.Duration(rng.ExpFloat64() / max(d.at(next[i]), 0.1) * float64(time.Second))
				n++
				select {
				case slots <- struct{}{}:
					calls.Add(1)
					go func(agent int) {
						defer calls.Done()
						r.ask(ctx, start, d.route, agent)
						<-slots
					}(n)
				default:
					t := time.Since(start)
					r.note(decision{asked: t, answered: t, budget: d.route, outcome: failed})
				}
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// ask asks an agent, and the next one if that cannot be reached.
func (r *region) ask(ctx context.Context, start time.Time, route string, agent int) {
	d := decision{asked: time.Since(start), budget: route, outcome: failed}
	for try := range len(r.agents) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		resp, err := r.agents[(agent+try)%len(r.agents)].CheckLimits(ctx, &rationv1.CheckLimitsRequest{
			Descriptors: []*rationv1.Descriptor{{Key: "tenant", Value: "acme"}, {Key: "route", Value: route}},
		})
		cancel()
		d.answered = time.Since(start)
		if err == nil {
			d.outcome = denied
			if resp.GetAllowed() {
				d.outcome = admitted
			}
			break
		}
		if decided(err) {
			d.outcome, d.reason = unavailable, status.Convert(err).Message()
			break
		}
	}
	r.note(d)
}

// decided tells an agent that says it cannot decide from one that is not
// there: the first one says when to come back.
func decided(err error) bool {
	s := status.Convert(err)
	return s.Code() == codes.Unavailable && len(s.Details()) > 0
}

func (r *region) note(d decision) {
	d.region = r.name
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decisions = append(r.decisions, d)
}
