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
	URL         string        `help:"URL of predictions, as in http://reco/predict."                                                      required:""`
	Host        string        `help:"Host that requests are for, when it is not that of the URL."`
	Concurrency int           `default:"4"                                                                                                help:"How many callers there are. Each waits for its answer before it asks again."`
	Rate        float64       `help:"Requests per second of all callers together. Default: as many as are answered."`
	For         time.Duration `default:"1m"                                                                                               help:"How long to call. SIGTERM ends it earlier."`
	Timeout     time.Duration `default:"10s"                                                                                              help:"How long a request may take."`
	NoKeepAlive bool          `help:"Make a connection for each request."`
	Wait        time.Duration `help:"How long to try for a first answer before anything counts, for callers that are not let in at once."`
}

// call for a time, or until ctx is done, and write a report of it on one line.
func call(ctx context.Context, out io.Writer, o CallOptions) error {
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()

	r, err := load.Run(ctx, load.Options{
		URL: o.URL, Host: o.Host, Concurrency: o.Concurrency, Rate: o.Rate, Timeout: o.Timeout, NoKeepAlive: o.NoKeepAlive, Wait: o.Wait,
	})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(r); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}

	return nil
}
