package wire

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Register adds a service of one method to a gRPC server with the options of
// lease/rpc, whose codec knows a Request and a Reply. answer keeps nothing of its
// request but strings.
func Register[Q any, P interface {
	*Q
	Request
}](r grpc.ServiceRegistrar, service protoreflect.ServiceDescriptor, answer func(context.Context, *Q) (*Reply, error)) {
	method := service.Methods().Get(0).Name()
	info := &grpc.UnaryServerInfo{FullMethod: "/" + string(service.FullName()) + "/" + string(method)}
	requests := sync.Pool{New: func() any { return new(Q) }}
	call := func(ctx context.Context, q any) (any, error) {
		reply, err := answer(ctx, q.(*Q))
		if err != nil {
			return nil, err
		}
		return reply, nil
	}
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: string(service.FullName()),
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: string(method),
			Handler: func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
				q := requests.Get().(*Q)
				defer func() {
					if P(q).Reset() {
						requests.Put(q)
					}
				}()
				switch err := decode(q); {
				case err != nil:
					return nil, err
				case interceptor == nil:
					return call(ctx, q)
				}
				return interceptor(ctx, q, info, call)
			},
		}},
		Metadata: service.ParentFile().Path(),
	}, nil)
}
