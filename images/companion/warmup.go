// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/warmup"
)

// warmUpCmd warms a server up.
type warmUpCmd struct {
	URL         string        `help:"What to request, as in http://127.0.0.1:8080/predict."        placeholder:"URL"                                                           required:""`
	Requests    int           `default:"10"                                                        help:"Requests that must be answered with success; the last five in a row."`
	Method      string        `help:"Method of the requests. Default: POST with a body, else GET." placeholder:"METHOD"`
	BodyFile    string        `help:"File with the body of the requests."                          placeholder:"FILE"`
	ContentType string        `default:"application/json"                                          help:"Content type of the body."`
	Timeout     time.Duration `default:"30s"                                                       help:"How long a request may take."`
	Listen      string        `default:":9901"                                                     help:"Address that answers on /ready whether the server is warm."`
}

// Run until a signal comes, which for a sidecar is when all other containers of the pod have ended.
func (c *warmUpCmd) Run(ctx context.Context, log *slog.Logger) error {
	// There is next to nothing to collect, and memory is counted for each replica.
	debug.SetGCPercent(25)
	o, err := c.options()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %q: %w", c.Listen, err)
	}
	w := warmup.New(log, o)
	mux := http.NewServeMux()
	mux.Handle("GET /ready", w)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	go w.Run(ctx)
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}
	_ = srv.Close()
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

func (c *warmUpCmd) options() (warmup.Options, error) {
	o := warmup.Options{
		Method: c.Method, ContentType: c.ContentType, Requests: c.Requests, Timeout: c.Timeout, Every: time.Second,
		Agent: "capstan-companion/" + version,
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" {
		return o, failure.New(failure.Invalid, fmt.Sprintf("--url=%s cannot be requested", c.URL), "write http://, the address and the path")
	}
	if c.Requests < 1 || c.Timeout <= 0 {
		return o, failure.New(failure.Invalid, "--requests and --timeout must be more than nothing", "correct the command line")
	}
	o.URL = u
	if c.BodyFile != "" {
		if o.Body, err = os.ReadFile(c.BodyFile); err != nil {
			return o, fmt.Errorf("cannot read the body of the requests: %w", err)
		}
	}
	if o.Method == "" {
		o.Method = http.MethodGet
		if len(o.Body) > 0 {
			o.Method = http.MethodPost
		}
	}
	return o, nil
}
