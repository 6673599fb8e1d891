// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// CallOptions say whom to call, and how.
type CallOptions struct {
	URL         string        `help:"URL of predictions, as in http://reco/predict."                                                             required:""`
	Host        string        `help:"Host that requests are for, when it is not in the URL."`
	Concurrency int           `default:"4"                                                                                                       help:"How many clients there are. Each waits for its answer before it asks again."`
	Rate        float64       `help:"Requests per second of all clients together. Default: as many as are answered."`
	For         time.Duration `default:"1m"                                                                                                      help:"How long to call. SIGTERM ends it earlier."`
	Timeout     time.Duration `default:"10s"                                                                                                     help:"How long a request may take."`
	NoKeepAlive bool          `help:"Make a connection for each request."`
	Wait        time.Duration `help:"How long to try for a first answer, and for a second without a refused connection, before anything counts."`
	Expect      []string      `help:"Failures that are no surprise, by kind, as in 'status 500'. They break nothing."                            placeholder:"KIND"`
}

// A verdict is a report with what it means.
type verdict struct {
	*load.Report

	// Broken says what is broken. Failures that no change of versions explains, and that are few, break nothing.
	Broken string `json:"broken"`
}

// call for a time, or until ctx is done, and write what became of it: a line for people, and as the last line a report.
func call(ctx context.Context, out io.Writer, o CallOptions) error {
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	r, err := load.Run(ctx, load.Options{
		URL: o.URL, Host: o.Host, Concurrency: o.Concurrency, Rate: o.Rate, Timeout: o.Timeout, NoKeepAlive: o.NoKeepAlive, Wait: o.Wait,
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, r.Summary()); err != nil {
		return fmt.Errorf("cannot write the summary: %w", err)
	}
	if err := json.NewEncoder(out).Encode(verdict{Report: r, Broken: r.Broken(o.Expect...)}); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}
