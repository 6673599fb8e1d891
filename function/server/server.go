// SPDX-License-Identifier: Apache-2.0

// Package server serves a composition function to Crossplane. Beside what the function SDK's own server does, it survives a panic
// of one call, takes up new certificates without a restart, ends without cutting calls off, and refuses to start when one of its
// addresses is taken.
package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// maxRequest is the size of the greatest request in bytes. Crossplane sends nothing greater.
const maxRequest = 4 << 20

// A client resolves the name of our Service again only when a connection ends. So connections end now and then, for it to find
// new replicas, and so that a client whose certificate is no longer trusted does not stay for ever. Above all it forgets a replica whose
// node is lost: Crossplane has no keepalive, so that it would call that one in vain until TCP closes the connection, a quarter of an hour later.
// One more handshake a minute costs little beside that.
const (
	maxConnectionAge      = time.Minute
	maxConnectionAgeGrace = time.Minute
)

// Options of a server.
type Options struct {
	// Log that the server writes to.
	Log *slog.Logger

	// Kinds that have a metric of their own. Any other kind counts as "other", as clients could choose any name.
	Kinds []string

	// Address that Crossplane calls.
	Address string

	// CertsDir is the folder with tls.crt, tls.key and the ca.crt that clients are verified with.
	CertsDir string

	// Clients that may call: DNS names in their certificates, at least one.
	Clients []string

	// Insecure serves without certificates. CertsDir and Clients are not looked at.
	Insecure bool

	// HealthAddress serves /livez and /readyz. None when empty.
	HealthAddress string

	// MetricsAddress serves /metrics. None when empty.
	MetricsAddress string

	// DrainDelay is how long to continue to serve after the context ended.
	DrainDelay time.Duration

	// DrainTimeout is how long running calls may take to end after that.
	DrainTimeout time.Duration
}

// A Server serves one function.
type Server struct {
	options Options
	grpc    *grpc.Server
	health  *health.Server
	ready   atomic.Bool

	listener  net.Listener
	endpoints []endpoint
}

// New returns a server that listens at all of its addresses and serves none yet. It returns an error when an address is taken or
// a certificate cannot be used.
func New(fn Runner, o Options) (*Server, error) {
	creds, err := transport(o)
	if err != nil {
		return nil, err
	}
	m := newMetrics(o.Kinds)
	c := &calls{log: o.Log, metrics: m}
	s := &Server{options: o, health: health.NewServer()}
	s.grpc = grpc.NewServer(
		grpc.Creds(creds),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ForceServerCodecV2(codec{stockCodec()}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge:      maxConnectionAge,
			MaxConnectionAgeGrace: maxConnectionAgeGrace,
		}),
	)
	s.grpc.RegisterService(newGate(m.waiting).service(c), fn)
	healthv1.RegisterHealthServer(s.grpc, s.health)
	if err := s.listen(m.handler()); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *Server) listen(metrics http.Handler) error {
	var err error
	if s.listener, err = net.Listen("tcp", s.options.Address); err != nil {
		return fmt.Errorf("cannot listen for calls: %w", err)
	}
	if err := s.expose(s.options.HealthAddress, s.probes()); err != nil {
		return fmt.Errorf("cannot listen for probes: %w", err)
	}
	if err := s.expose(s.options.MetricsAddress, metrics); err != nil {
		return fmt.Errorf("cannot listen for metrics: %w", err)
	}
	return nil
}

// Addr that Crossplane calls.
func (s *Server) Addr() net.Addr {
	return s.listener.Addr()
}

// Run serves until the context ends, then drains: clients are notified first, calls are served for the delay, running ones get the
// timeout to end. It returns an error when something cannot be served any more.
func (s *Server) Run(ctx context.Context) error {
	defer s.close()
	failed := make(chan error, 1+len(s.endpoints))
	go func() { failed <- s.grpc.Serve(s.listener) }()
	for _, e := range s.endpoints {
		go func() { failed <- e.server.Serve(e.listener) }()
	}
	s.ready.Store(true)
	s.options.Log.Info("serving", "address", s.Addr().String(), "insecure", s.options.Insecure)
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}
	s.drain()
	return nil
}

// drain ends the server in an order in which no call fails.
func (s *Server) drain() {
	s.options.Log.Info("draining", "delay", s.options.DrainDelay.String(), "timeout", s.options.DrainTimeout.String())
	s.ready.Store(false)
	s.health.Shutdown()
	time.Sleep(s.options.DrainDelay)

	// Stop ends what GracefulStop waits for.
	late := time.AfterFunc(s.options.DrainTimeout, func() {
		s.options.Log.Warn("cutting off calls that still run")
		s.grpc.Stop()
	})
	defer late.Stop()
	s.grpc.GracefulStop()
}

// close what is still open. Listeners that were never served are not closed by their servers.
func (s *Server) close() {
	s.grpc.Stop()
	if s.listener != nil {
		_ = s.listener.Close()
	}
	for _, e := range s.endpoints {
		_ = e.server.Close()
		_ = e.listener.Close()
	}
}
