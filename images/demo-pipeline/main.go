// SPDX-License-Identifier: Apache-2.0

// Command demo-pipeline is the program of a pipeline that moves nothing, in a controlled way: it works for a while, fails on request, and
// says on one line of JSON which run it was. Demos and tests of pipelines are made with it.
//
//	demo-pipeline --work=2s                       works for two seconds
//	demo-pipeline --work=1h --exit=3 --until=2    fails with exit code 3 in attempts 0 and 1, and works in attempt 2
//	demo-pipeline --memory=64                     takes 64 MiB
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// terminated is the exit code of a program that got SIGTERM.
const terminated = 128 + int(syscall.SIGTERM)

// Options of a run.
type Options struct {
	Work   time.Duration `default:"1s" env:"WORK"                                            help:"How long it works."`
	Say    string        `env:"SAY"    help:"A line that it writes first."`
	Exit   int           `env:"EXIT"   help:"Exit code with which it fails before it works."`
	Until  int           `default:"1"  env:"UNTIL"                                           help:"First attempt that does not fail."`
	Memory int           `env:"MEMORY" help:"MiB of memory that it takes before it works."`

	Run         string `env:"CAPSTAN_RUN"          hidden:""`
	ScheduledAt string `env:"CAPSTAN_SCHEDULED_AT" hidden:""`
	Attempt     int    `env:"CAPSTAN_ATTEMPT"      hidden:""`
}

// A Result says which run it was.
type Result struct {
	Run         string `json:"run"`
	ScheduledAt string `json:"scheduledAt,omitempty"`
	Attempt     int    `json:"attempt"`
	MiB         int    `json:"mib,omitempty"`
}

func main() {
	var o Options
	kong.Parse(&o, kong.Name("demo-pipeline"), kong.Description("The program of a pipeline for demos and tests."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := run(ctx, o, os.Stdout)
	stop()
	os.Exit(code)
}

// run the program, and return its exit code.
func run(ctx context.Context, o Options, out io.Writer) int {
	if o.Say != "" {
		_, _ = fmt.Fprintln(out, o.Say)
	}
	if o.Exit != 0 && o.Attempt < o.Until {
		return o.Exit
	}
	taken := take(o.Memory)
	select {
	case <-time.After(o.Work):
	case <-ctx.Done():
		return terminated
	}
	raw, err := json.Marshal(Result{Run: o.Run, ScheduledAt: o.ScheduledAt, Attempt: o.Attempt, MiB: len(taken)})
	if err != nil {
		_, _ = fmt.Fprintln(out, err)
		return 1
	}
	_, _ = fmt.Fprintf(out, "%s\n", raw)
	return 0
}

// take memory for good: each page is written.
func take(mebi int) [][]byte {
	taken := make([][]byte, 0, mebi)
	for range mebi {
		piece := make([]byte, 1<<20)
		for i := 0; i < len(piece); i += 4096 {
			piece[i] = 1
		}
		taken = append(taken, piece)
	}
	return taken
}
