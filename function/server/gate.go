// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/edge"
)

// maxStreams is how many calls of one client come in at a time: Crossplane keeps the others. Together with the size of the greatest
// request it bounds what waits here.
const maxStreams = 16

// maxDecoded is the size of all requests that are decoded at a time, in bytes. A request takes its size, what is read of it about
// ten times as much, and one that has to be written again fifteen times.
const maxDecoded = 1 << 20

// A gate lets calls in as long as all their requests together are not too large. A larger one is alone. After a
// restart of Crossplane all composite resources call at once: what they need together is more memory than a pod has.
type gate struct {
	room    *semaphore.Weighted
	waiting prometheus.Gauge
}

func newGate(waiting prometheus.Gauge) *gate {
	return &gate{room: semaphore.NewWeighted(maxDecoded), waiting: waiting}
}

// service is the function's, behind the gate and through the calls.
func (g *gate) service(c *calls) *grpc.ServiceDesc {
	desc := fnv1.FunctionRunnerService_ServiceDesc
	desc.HandlerType = (*Runner)(nil)
	desc.Methods = []grpc.MethodDesc{{
		MethodName: desc.Methods[0].MethodName,
		Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			runner := srv.(Runner) //nolint:errcheck,forcetypeassert // gRPC has checked it.
			return g.handle(ctx, decode, func(req *edge.Request) *edge.Answer { return c.run(ctx, runner, req) })
		},
	}}
	return &desc
}

// handle a call. It waits before the request is decoded, and until the context of the call ends at the latest.
func (g *gate) handle(ctx context.Context, decode func(any) error, run func(*edge.Request) *edge.Answer) (any, error) {
	r := &undecoded{}
	if err := decode(r); err != nil {
		return nil, err
	}
	leave, err := g.enter(ctx, r.data.Len())
	if err != nil {
		r.data.Free()
		return nil, status.FromContextError(err).Err()
	}
	defer leave()
	req, err := edge.Receive(r.data)
	r.data.Free()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return run(req), nil
}

// enter with a request of a size in bytes. What is returned makes room for others.
func (g *gate) enter(ctx context.Context, size int) (leave func(), err error) {
	weight := int64(min(size, maxDecoded))
	if !g.room.TryAcquire(weight) {
		g.waiting.Inc()
		defer g.waiting.Dec()
		if err := g.room.Acquire(ctx, weight); err != nil {
			return nil, err
		}
	}
	return func() { g.room.Release(weight) }, nil
}

// undecoded is a request as it came in. Its data has to be freed.
type undecoded struct {
	data mem.BufferSlice
}

func stockCodec() encoding.CodecV2 { return encoding.GetCodecV2(proto.Name) }

// codec is the stock one for all but the function's requests and answers: those it leaves as they are, and these are bytes already.
type codec struct {
	encoding.CodecV2
}

// Unmarshal decodes into v, or keeps the data.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*undecoded); ok {
		data.Ref()
		r.data = data
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// Marshal v, or hand out the bytes of an answer.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	a, ok := v.(*edge.Answer)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	wire, err := a.Wire()
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(wire)}, nil
}
