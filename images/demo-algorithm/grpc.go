// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The gRPC service on the same port. Its messages are well-known types, so that a client needs no generated code: the input is
// JSON, and so is the answer, a Prediction.
const (
	predictorService = "demo.v1.Predictor"
	predictMethod    = "Predict"
)

// A predictor answers the method Predict.
type predictor interface {
	predictRPC(ctx context.Context, in *wrapperspb.StringValue) (*wrapperspb.StringValue, error)
}

// newGRPC serves predictions, and their health as grpc.health.v1 defines it.
func newGRPC(h *handler) *grpc.Server {
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: predictorService,
		HandlerType: (*predictor)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: predictMethod,
			Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				in := &wrapperspb.StringValue{}
				if err := decode(in); err != nil {
					return nil, err
				}
				p, ok := srv.(predictor)
				if !ok {
					return nil, grpcstatus.Error(codes.Internal, "no predictor is registered")
				}
				return p.predictRPC(ctx, in)
			},
		}},
	}, h)
	grpc_health_v1.RegisterHealthServer(s, &health{handler: h})
	return s
}

// either sends requests of gRPC to one handler and all others to another.
func either(rpc, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			rpc.ServeHTTP(w, r)
			return
		}
		other.ServeHTTP(w, r)
	})
}

// predictRPC is measured as a request by HTTP is, by the status that it would have there.
func (h *handler) predictRPC(ctx context.Context, in *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	began := time.Now()
	h.metrics.inFlight.Inc()
	defer h.metrics.inFlight.Dec()
	p, err := h.compute(ctx, input([]byte(in.GetValue())))
	code := http.StatusOK
	switch {
	case errors.Is(err, errInput):
		code, err = http.StatusBadRequest, grpcstatus.Error(codes.InvalidArgument, err.Error())
	case errors.Is(err, errPrediction):
		code, err = http.StatusInternalServerError, grpcstatus.Error(codes.Internal, err.Error())
	case err != nil:
		return nil, grpcstatus.FromContextError(err).Err()
	}
	h.metrics.requests.WithLabelValues(strconv.Itoa(code)).Inc()
	h.metrics.duration.WithLabelValues(strconv.Itoa(code)).Observe(time.Since(began).Seconds())
	if err != nil {
		return nil, err
	}
	return wrapperspb.String(text(p)), nil
}

// health of the server and of its one service, as the kubelet asks for it.
type health struct {
	grpc_health_v1.UnimplementedHealthServer

	handler *handler
}

func (s *health) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	switch {
	case r.GetService() != "" && r.GetService() != predictorService:
		return nil, grpcstatus.Errorf(codes.NotFound, "there is no service %q", r.GetService())
	case s.handler.draining.Load():
		return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING}, nil
	default:
		return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
	}
}
