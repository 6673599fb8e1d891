// SPDX-License-Identifier: Apache-2.0

// Command demo-database is a client that keeps account: it writes numbered rows at a steady rate, and in the end compares every
// row that was acknowledged with the rows that are there. Demos and tests of failover are made with it.
//
//	demo-database --uri=postgresql://… --for=60s
//	demo-database --uri=mysql://… --ca=ca.crt --for=60s
//
// With --every it asks one member, at a pace that does not depend on answers, whether it takes a write, and prints each one that it
// took:
//
//	demo-database --uri=mysql://… --host=orders-db-a-0.orders-db-pods.demo.svc --every=100ms
//
// Each time that no write was acknowledged for longer than usual it prints a Gap, and at its end an Account, as JSON on one line
// each.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// Options of the writer.
type Options struct {
	URI      string        `env:"URI"                                                                                                                              help:"Where to connect to, postgresql:// or mysql://. Of PostgreSQL several hosts are tried in turn."              required:""`
	CA       string        `env:"MYSQL_CA"                                                                                                                         help:"File of the authority of a MySQL server. Default: what the system trusts. For PostgreSQL set PGSSLROOTCERT."`
	Host     string        `help:"Host to connect to in place of the one in the URI."`
	Every    time.Duration `help:"Write at this pace, without waiting for answers, and print each write that was acknowledged. The table of rows has to be there."`
	Name     string        `default:"writer"                                                                                                                       env:"NAME"                                                                                                         help:"Name that distinguishes the rows of this writer from others."`
	Interval time.Duration `default:"50ms"                                                                                                                         help:"Pause between writes."`
	Timeout  time.Duration `default:"1s"                                                                                                                           help:"How long a connection, and a write, may take before it counts as failed."`
	Gap      time.Duration `default:"500ms"                                                                                                                        help:"Time without an acknowledged write that is reported."`
	For      time.Duration `default:"1m"                                                                                                                           help:"How long to write. SIGTERM ends it earlier."`
	Settle   time.Duration `default:"60s"                                                                                                                          help:"How long to try to read the rows in the end."`
}

func main() {
	var o Options
	kong.Parse(&o, kong.Name("demo-database"), kong.Description("A client that writes rows and keeps account of them."))
	if err := run(o); err != nil {
		slog.Error("cannot continue", "error", err)
		os.Exit(1)
	}
}

func run(o Options) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	out := json.NewEncoder(os.Stdout)
	uri, err := at(o.URI, o.Host)
	if err != nil {
		return err
	}
	o.URI = uri
	s, err := open(o)
	if err != nil {
		return err
	}
	defer s.close()
	w := &writer{options: o, server: s, now: time.Now, tell: func(v any) error { return out.Encode(v) }}
	during, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	if o.Every > 0 {
		p, err := newProber(w, func() (rows, error) { return open(o) })
		if err != nil {
			return err
		}
		ticks := time.NewTicker(o.Every)
		defer ticks.Stop()
		p.write(during, ticks.C)
		w = &p.writer
	} else {
		if err := w.prepare(ctx); err != nil {
			return fmt.Errorf("cannot make the table of rows: %w", err)
		}
		if err := w.write(during); err != nil {
			return err
		}
	}

	// SIGTERM ended the writing; the account is still due.
	account, err := w.account(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	return out.Encode(account)
}

// at another host, if one is named, what a URI connects to.
func at(uri, host string) (string, error) {
	if host == "" {
		return uri, nil
	}
	u, err := url.Parse(uri)
	if err != nil {
		return "", fmt.Errorf("cannot understand the URI: %w", errors.Unwrap(err)) // The outer error quotes the password.
	}
	u.Host = net.JoinHostPort(host, u.Port())
	return u.String(), nil
}

// open the server of the URI. It connects only when it is needed.
func open(o Options) (rows, error) {
	if strings.HasPrefix(o.URI, "mysql:") {
		return openMySQL(o.URI, o.CA, o.Timeout)
	}
	return openPostgres(o.URI, o.Timeout)
}
