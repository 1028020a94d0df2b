package wire

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Register adds a service of one method to a gRPC server with the options of
// lease/rpc, whose codec knows a Request and a Reply. answer keeps nothing of its
// request but strings. Interceptors stand before the reading too, because one of them
// is there for panics: what they are given is no request yet.
func Register[Q any, P interface {
	*Q
	Request
}](r grpc.ServiceRegistrar, service protoreflect.ServiceDescriptor, answer func(context.Context, *Q) (*Reply, error)) {
	method := service.Methods().Get(0).Name()
	info := &grpc.UnaryServerInfo{FullMethod: "/" + string(service.FullName()) + "/" + string(method)}
	calls := sync.Pool{New: func() any { return new(call[Q]) }}
	handle := func(ctx context.Context, req any) (any, error) {
		c := req.(*call[Q])
		if err := c.decode(&c.request); err != nil {
			return nil, err
		}
		reply, err := answer(ctx, &c.request)
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
				c := calls.Get().(*call[Q])
				c.decode = decode
				defer func() {
					c.decode = nil
					if P(&c.request).Reset() {
						calls.Put(c)
					}
				}()
				if interceptor == nil {
					return handle(ctx, c)
				}
				return interceptor(ctx, c, info, handle)
			},
		}},
		Metadata: service.ParentFile().Path(),
	}, nil)
}

// call is a request and what reads it.
type call[Q any] struct {
	request Q
	decode  func(any) error
}
