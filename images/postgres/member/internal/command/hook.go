// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// hookRetry is how long a hook waits before it tries again to reach what it is for.
const hookRetry = 2 * time.Second

// Hook runs one hook of a change, in a pod of its own: SQL as a consumer of the Database, or an HTTP request. Until the server is
// reached it tries again; what was sent once is not sent again.
type Hook struct {
	SQL            string        `env:"CAPSTAN_HOOK_SQL"             help:"Statements to run, in one transaction."                            required:""                    xor:"what"`
	URL            string        `env:"CAPSTAN_HOOK_URL"             help:"URL to call."                                                      required:""                    xor:"what"`
	Method         string        `default:"POST"                     env:"CAPSTAN_HOOK_METHOD"                                                help:"Method to call it with."`
	ExpectedStatus int           `env:"CAPSTAN_HOOK_EXPECTED_STATUS" help:"Status that the answer must have; any from 200 to 299 if it is 0."`
	Timeout        time.Duration `default:"5m"                       env:"CAPSTAN_HOOK_TIMEOUT"                                               help:"How long it may take."`
	Connection     string        `default:"${connection}"            help:"Folder with the Secret of the consumer."                           type:"path"`
}

// Run the hook.
func (c *Hook) Run(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	do, what := c.request, "the request"
	if c.SQL != "" {
		do, what = c.statements, "the statements"
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
			return fmt.Errorf("%s did not end within %s: %w", what, c.Timeout, err)
		case !errors.As(err, &unreached):
			return err
		}
		log.Info("trying again", "error", err.Error())
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s could not be sent within %s: %w", what, c.Timeout, err)
		case <-time.After(hookRetry):
		}
	}
}

// An unreachedError is of a server that has not heard of us.
type unreachedError struct{ error }

func (e unreachedError) Unwrap() error { return e.error }

// statements are run in one transaction, which a failure undoes.
func (c *Hook) statements(ctx context.Context) error {
	uri, err := os.ReadFile(filepath.Join(c.Connection, "uri"))
	if err != nil {
		return fmt.Errorf("cannot read the Secret of the consumer: %w", err)
	}
	cfg, err := pgx.ParseConfig(string(uri))
	if err != nil {
		return errors.New("the Secret of the consumer has no uri of PostgreSQL") // what it says may hold the password
	}
	if cfg.TLSConfig == nil {
		cfg.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cfg.Host}
	}
	if ca, err := os.ReadFile(filepath.Join(c.Connection, "ca.crt")); err == nil {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return errors.New("the Secret of the consumer has no certificate in ca.crt")
		}
		cfg.TLSConfig.RootCAs = roots
	}
	cfg.Fallbacks = nil
	cfg.RuntimeParams["application_name"] = "capstan-hook"
	cfg.RuntimeParams["statement_timeout"] = strconv.FormatInt(c.Timeout.Milliseconds(), 10)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return unreachedError{fmt.Errorf("cannot connect as %q: %w", cfg.User, err)}
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err = conn.Exec(ctx, c.SQL, pgx.QueryExecModeSimpleProtocol); err == nil {
		return nil
	}
	if p := (*pgconn.PgError)(nil); errors.As(err, &p) {
		return fmt.Errorf("PostgreSQL refuses the statements: %s (%s)", p.Message, p.Code)
	}
	return fmt.Errorf("the connection broke while the statements ran; they may have been committed: %w", err)
}

func (c *Hook) request(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, c.Method, c.URL, http.NoBody)
	if err != nil {
		return fmt.Errorf("cannot make the request: %w", err)
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err // It repeats the URL.
		}
		if o := (*net.OpError)(nil); errors.As(err, &o) && o.Op == "dial" {
			return unreachedError{fmt.Errorf("cannot connect: %w", err)}
		}
		return fmt.Errorf("the request failed: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 512))
	if answer.StatusCode == c.ExpectedStatus || c.ExpectedStatus == 0 && answer.StatusCode/100 == 2 {
		return nil
	}
	return fmt.Errorf("the answer has status %d: %q", answer.StatusCode, body)
}
