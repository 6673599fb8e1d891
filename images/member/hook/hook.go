// SPDX-License-Identifier: Apache-2.0

// Package hook runs one hook of a change, in a pod of its own: SQL as a consumer of the Database, or an HTTP request.
package hook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// retry is how long a hook waits before it tries again to reach what it is for.
const retry = 2 * time.Second

// Program is the name that hooks have in the server's list of sessions.
const Program = "capstan-hook"

// A Hook is SQL or a request. Until the server is reached it tries again; what was sent once is not sent again.
type Hook struct {
	SQL            string        `env:"CAPSTAN_HOOK_SQL"             help:"Statements to run, in one transaction."                            required:""                    xor:"what"`
	URL            string        `env:"CAPSTAN_HOOK_URL"             help:"URL to call."                                                      required:""                    xor:"what"`
	Method         string        `default:"POST"                     env:"CAPSTAN_HOOK_METHOD"                                                help:"Method to call it with."`
	ExpectedStatus int           `env:"CAPSTAN_HOOK_EXPECTED_STATUS" help:"Status that the answer must have; any from 200 to 299 if it is 0."`
	Timeout        time.Duration `default:"5m"                       env:"CAPSTAN_HOOK_TIMEOUT"                                               help:"How long it may take."`
	Connection     string        `default:"${connection}"            help:"Folder with the Secret of the consumer."                           type:"path"`
}

// Do the hook. The engine's function runs SQL: in one transaction, which a failure undoes. It wraps what has not reached the server in
// Unreached.
func (h *Hook) Do(ctx context.Context, log *slog.Logger, statements func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	do, what := h.request, "the request"
	if h.SQL != "" {
		do, what = statements, "the statements"
	}
	began := time.Now()
	for {
		err := do(ctx)
		var unreached unreachedError
		switch {
		case err == nil:
			log.Info("the hook succeeded", "took", time.Since(began).Round(time.Millisecond).String())
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s did not end within %s: %w", what, h.Timeout, err)
		case !errors.As(err, &unreached):
			return err
		}
		log.Info("trying again", "error", err.Error())
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s could not be sent within %s: %w", what, h.Timeout, err)
		case <-time.After(retry):
		}
	}
}

// An unreachedError is of a server that has not heard of us.
type unreachedError struct{ error }

func (e unreachedError) Unwrap() error { return e.error }

// Unreached is an error of a server that has not heard of the hook, which is tried again.
func Unreached(err error) error { return unreachedError{err} }

// URI of the consumer's Secret. It holds the password.
func (h *Hook) URI() (string, error) {
	uri, err := os.ReadFile(filepath.Join(h.Connection, "uri"))
	if err != nil {
		return "", fmt.Errorf("cannot read the Secret of the consumer: %w", err)
	}
	return string(uri), nil
}

// TLS for a server at a host, whose certificate the authority of the consumer's Secret has signed. Without ca.crt there, one that every
// system trusts has.
func (h *Hook) TLS(host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if ca, err := os.ReadFile(filepath.Join(h.Connection, "ca.crt")); err == nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("the Secret of the consumer has no certificate in ca.crt")
		}
	}
	return c, nil
}
