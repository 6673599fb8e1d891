// SPDX-License-Identifier: Apache-2.0

// Command demo-algorithm is an algorithm that does nothing useful in a controlled way: it answers predictions with a score, as
// slowly and as wrongly as its flags say. Demos and tests of rollouts and scaling are made with it.
//
//	demo-algorithm --latency-ms=40                            serves
//	demo-algorithm call --url=http://reco/predict --for=60s   calls, and reports on one line what became of every request
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// version is set by the linker.
var version = "unknown"

// Options of the server. The behaviour can be changed while it runs, see handler.
type Options struct {
	Listen           string        `default:":8080"      env:"LISTEN"                                                                                                                  help:"Address to listen on."`
	Version          string        `default:"${version}" env:"VERSION"                                                                                                                 help:"What answers name as their version, unless the model has one."`
	LatencyMs        float64       `default:"0"          env:"LATENCY_MS"                                                                                                              help:"Mean time a prediction takes, in milliseconds."`
	JitterMs         float64       `default:"0"          env:"JITTER_MS"                                                                                                               help:"How far the time may be from the mean, in milliseconds."`
	ErrorRate        float64       `default:"0"          env:"ERROR_RATE"                                                                                                              help:"Share of predictions that fail, from 0 to 1."`
	FailAfterSeconds float64       `default:"0"          env:"FAIL_AFTER_SECONDS"                                                                                                      help:"How many seconds after the start predictions begin to fail."`
	ScoreShift       float64       `default:"0"          env:"SCORE_SHIFT"                                                                                                             help:"What is added to every score, from -1 to 1."`
	Workers          int           `default:"0"          env:"CONCURRENCY"                                                                                                             help:"How many predictions are computed at a time. Others wait for their turn. 0 computes all at once."`
	Metrics          string        `default:"Algorithm"  enum:"Algorithm,vLLM,SGLang"                                                                                                  env:"METRICS"                                                                                                                 help:"Metrics to expose: of an algorithm, or of a server of language models under its names."`
	Tokens           int           `default:"16"         env:"TOKENS"                                                                                                                  help:"With metrics of a server of language models: how many tokens an answer has. The first one takes the latency."`
	TokenMs          float64       `default:"2"          env:"TOKEN_MS"                                                                                                                help:"How long each further token takes, in milliseconds."`
	ModelFile        string        `env:"MODEL_FILE"     help:"File of a model, which is read at the start. Answers name its digest, and the version of one that demo-training wrote." placeholder:"PATH"`
	Start            time.Duration `default:"0s"         env:"START_DELAY"                                                                                                             help:"How long to take before listening, as servers do that load a model."`
	CrashAfter       time.Duration `default:"0s"         env:"CRASH_AFTER"                                                                                                             help:"How long to serve from the first prediction on before the program ends with an error. 0 serves until a signal ends it."`
	Notice           time.Duration `default:"3s"         env:"DRAIN_DELAY"                                                                                                             help:"How long to serve on after SIGTERM, not ready any more, while clients take notice."`
	Drain            time.Duration `default:"20s"        env:"DRAIN_LIMIT"                                                                                                             help:"How long requests that began may take after that."`
}

type cli struct {
	Serve Options     `cmd:"" default:"withargs"                                help:"Serve predictions."`
	Call  CallOptions `cmd:"" help:"Call the server and count what came of it."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	var c cli
	command := kong.Parse(&c, kong.Name("demo-algorithm"), kong.Description("An algorithm for demos and tests."), kong.Vars{"version": version})
	var err error
	switch command.Command() {
	case "call":
		err = call(ctx, os.Stdout, c.Call)
	default:
		err = run(ctx, log, c.Serve)
	}
	if err != nil {
		log.Error("cannot "+command.Command(), "error", err)
		stop()
		os.Exit(1) //nolint:gocritic // The only deferred call is made above.
	}
}

// run serves until ctx is done and every request that began by then is answered.
func run(ctx context.Context, log *slog.Logger, o Options) error {
	if o.Start > 0 {
		log.Info("starting", "delay", o.Start.String())
		select {
		case <-time.After(o.Start):
		case <-ctx.Done():
			return nil
		}
	}
	m, err := loadModel(o.ModelFile)
	if err != nil {
		return err
	}
	o = m.options(o)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %q: %w", o.Listen, err)
	}
	return serve(ctx, log, o, m.digest, listener)
}

func serve(ctx context.Context, log *slog.Logger, o Options, modelDigest string, listener net.Listener) error {
	h, err := newHandler(o.Version, Behaviour{
		LatencyMs: o.LatencyMs, JitterMs: o.JitterMs, ErrorRate: o.ErrorRate, FailAfterSeconds: o.FailAfterSeconds,
		ScoreShift: o.ScoreShift, Workers: o.Workers,
	})
	if err != nil {
		return err
	}
	h.modelDigest = modelDigest
	if o.Metrics == serverVLLM || o.Metrics == serverSGLang {
		h.metrics.hide()
		h.llm = newLLM(o.Metrics, o.Tokens, time.Duration(o.TokenMs*float64(time.Millisecond)), h.metrics.registry)
	}
	// Clients of gRPC begin with HTTP/2, without TLS.
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, Protocols: protocols}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	log.Info("serving", "address", listener.Addr().String(), "version", o.Version)
	if err := h.until(ctx, failed, o.CrashAfter); err != nil {
		return err
	}

	// Kubernetes takes a pod out of its Services while it sends SIGTERM, not before, so requests still arrive.
	log.Info("draining", "notice", o.Notice.String())
	h.drain()
	time.Sleep(o.Notice)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Drain)
	defer cancel()
	if err := srv.Shutdown(limit); err != nil {
		return fmt.Errorf("cannot finish all requests in %s: %w", o.Drain, err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// until the context is done. It errs when the server fails, and when it is set to crash some time after the first prediction.
func (h *handler) until(ctx context.Context, failed <-chan error, crashAfter time.Duration) error {
	called, crash := h.called, (<-chan time.Time)(nil)
	if crashAfter == 0 {
		called = nil
	}
	for {
		select {
		case err := <-failed:
			return fmt.Errorf("cannot serve: %w", err)
		case <-called:
			called, crash = nil, time.After(crashAfter)
		case <-crash:
			return fmt.Errorf("cannot serve on: set to crash after %s", crashAfter)
		case <-ctx.Done():
			return nil
		}
	}
}
