package redis

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ration-dev/ration/lease"
)

// ready makes the checks of the server if they have not succeeded yet.
func (s *Store) ready(ctx context.Context) error {
	if s.checked.Load() {
		return nil
	}
	return s.check(ctx)
}

// check finds out whether the server can keep wallets. A final error is one
// that only an operator can mend.
func (s *Store) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	if s.checked.Load() {
		return nil
	}
	if err := s.onEachPrimary(ctx, s.checkPrimary); err != nil {
		return translate(err)
	}
	s.checked.Store(true)
	return nil
}

func (s *Store) onEachPrimary(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, f)
	case *redis.Client:
		return f(ctx, c)
	}
	return nil
}

func (s *Store) checkPrimary(ctx context.Context, c *redis.Client) error {
	if err := s.checkServer(ctx, c); err != nil {
		return err
	}
	return s.checkReplicationID(ctx, c)
}

func (s *Store) checkServer(ctx context.Context, c *redis.Client) error {
	info, err := c.Info(ctx, "everything").Result()
	if forbidden(err) {
		s.opts.Log.Warn("cannot check that redis evicts nothing: INFO is forbidden", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	if policy, ok := infoField(info, "maxmemory_policy"); ok && policy != "noeviction" {
		return fmt.Errorf("%w (it is %s)", ErrEvicts, policy)
	}
	if on, _ := infoField(info, "cluster_enabled"); on == "1" && !s.keys.cluster {
		return ErrClusterNode
	}
	return nil
}

// checkReplicationID finds out whether scripts may read the replication id,
// and else whether new connections may.
func (s *Store) checkReplicationID(ctx context.Context, c *redis.Client) error {
	err := c.Eval(ctx, "return redis.call('INFO', 'replication')", nil).Err()
	if err == nil && !s.opts.connCheck {
		return nil
	}
	if err != nil && !forbidden(err) {
		return err
	}
	if !s.owned || s.keys.cluster {
		return fmt.Errorf("%w in scripts: only Open over a single primary can do without", ErrNoReplicationID)
	}
	id, err := primaryID(ctx, c)
	if err != nil {
		return err
	}
	s.connReplid.Store(&id)
	s.connCheck.Store(true)
	s.opts.Log.Warn("redis forbids INFO in scripts: the replication id is checked on new connections only")
	return nil
}

// onConnect reads the replication id on a new connection where scripts may
// not. A changed one fails the step that needed the connection, because it
// carries the old one.
func (s *Store) onConnect(ctx context.Context, cn *redis.Conn) error {
	if !s.connCheck.Load() {
		return nil
	}
	id, err := primaryID(ctx, cn)
	if err != nil {
		return err
	}
	if old := s.connReplid.Swap(&id); old != nil && *old != id {
		return errors.New("redis has another replication id than before")
	}
	return nil
}

type informer interface {
	Info(ctx context.Context, sections ...string) *redis.StringCmd
}

func primaryID(ctx context.Context, c informer) (string, error) {
	info, err := c.Info(ctx, "replication").Result()
	if forbidden(err) {
		return "", ErrNoReplicationID
	}
	if err != nil {
		return "", err
	}
	if role, _ := infoField(info, "role"); role != "master" {
		return "", lease.Errorf(lease.Unavailable, "", "redis is a replica")
	}
	id, ok := infoField(info, "master_replid")
	if !ok {
		return "", ErrNoReplicationID
	}
	return id, nil
}

// infoField reads one whole line of INFO: master_replid is not
// master_replid2, which holds the old id after a promotion.
func infoField(info, name string) (string, bool) {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimRight(v, "\r\n"), true
		}
	}
	return "", false
}

var forbiddenWords = regexp.MustCompile(`^NOPERM |(?i)unknown (redis )?command|not allowed from script|executing the script can't run this command`)

// forbidden reports whether the server refused a command for good.
func forbidden(err error) bool {
	return err != nil && forbiddenWords.MatchString(err.Error())
}

// final reports whether an error of a check needs an operator.
func final(err error) bool {
	return errors.Is(err, ErrEvicts) || errors.Is(err, ErrNoReplicationID) || errors.Is(err, ErrClusterNode)
}

// translate turns every error of the driver into one of ours, once, at the
// edge: the outcome is unknown. An operator's errors pass as they are.
func translate(err error) error {
	var ours *lease.Error
	if err == nil || final(err) || errors.As(err, &ours) {
		return err
	}
	return &unavailable{
		typed: lease.Errorf(lease.Unavailable, "", "the region's store gave no answer: %v", err),
		cause: err,
	}
}

// unavailable keeps the cause beside the error that callers look for.
type unavailable struct {
	typed *lease.Error
	cause error
}

func (u *unavailable) Error() string { return u.typed.Error() }

func (u *unavailable) Unwrap() []error { return []error{u.typed, u.cause} }
