// Package wiretest is what the tests of methods that read and write themselves
// have in common: such a method is to do as the protobuf library's messages would.
package wiretest

import (
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/ration-dev/ration/internal/wire"
	"github.com/ration-dev/ration/lease/rpc"
)

const (
	mangled = 20_000
	longest = 400 // bytes of a message that is mangled
)

// Mangled are messages that are nearly right: those of list that are not long,
// with bytes changed, put in and taken out. They are the same each time.
func Mangled(list [][]byte) iter.Seq[[]byte] {
	list = slices.DeleteFunc(slices.Clone(list), func(b []byte) bool { return len(b) == 0 || len(b) > longest })
	return func(yield func([]byte) bool) {
		r := rand.New(rand.NewPCG(1, 2))
		one := func() []byte { return list[r.IntN(len(list))] }
		for range mangled {
			b := slices.Clone(one())
			for n := 1 + r.IntN(3); n > 0 && len(b) > 0; n-- {
				at := r.IntN(len(b))
				switch r.IntN(4) {
				case 0:
					b[at] = byte(r.Uint32())
				case 1:
					b[at] ^= 1 << r.IntN(8)
				case 2:
					other := one()
					b = slices.Insert(b, at, other[:r.IntN(len(other))]...)
				case 3:
					b = slices.Delete(b, at, min(len(b), at+r.IntN(4)))
				}
			}
			if !yield(b) {
				return
			}
		}
	}
}

// InPieces is b in one piece and in two, as a message may come.
func InPieces(b []byte) []mem.BufferSlice {
	half := len(b) / 2
	return []mem.BufferSlice{{mem.SliceBuffer(b)}, {mem.SliceBuffer(b[:half]), mem.SliceBuffer(b[half:])}}
}

// Written fails the test unless the protobuf library reads reply as want.
func Written(t *testing.T, reply *wire.Reply, want proto.Message) {
	t.Helper()
	written, err := rpc.NewCodec().Marshal(reply)
	if err != nil {
		t.Fatal(err)
	}
	defer written.Free()
	got := want.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(written.Materialize(), got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Fatalf("%v is written, want %v", got, want)
	}
}

// Method is the only method of the service that register registers.
func Method(register func(grpc.ServiceRegistrar)) grpc.MethodHandler {
	var r registrar
	register(&r)
	return r.handle
}

type registrar struct{ handle grpc.MethodHandler }

func (r *registrar) RegisterService(d *grpc.ServiceDesc, _ any) { r.handle = d.Methods[0].Handler }

// Benchmark measures a method alone, between the bytes of a request and those of
// its reply, beside plainly: the same with the protobuf library's messages.
func Benchmark(b *testing.B, request []byte, method grpc.MethodHandler, plainly func(context.Context, encoding.CodecV2, mem.BufferSlice) (proto.Message, error)) {
	codec, data := rpc.NewCodec(), mem.BufferSlice{mem.SliceBuffer(request)}
	decode := func(v any) error { return codec.Unmarshal(data, v) }
	through := func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(ctx, q)
	}
	run := func(name string, answer func() (any, error)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				reply, err := answer()
				if err != nil {
					b.Fatal(err)
				}
				out, err := codec.Marshal(reply)
				if err != nil {
					b.Fatal(err)
				}
				out.Free()
			}
		})
	}
	run("ours", func() (any, error) { return method(nil, b.Context(), decode, through) })
	run("plainly", func() (any, error) { return plainly(b.Context(), codec, data) })
}
