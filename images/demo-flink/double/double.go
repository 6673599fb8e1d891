// SPDX-License-Identifier: Apache-2.0

// Package double plays Java with Flink: a JobManager or a TaskManager, by the main class that the command line names.
//
// The job counts numbers by their remainder, and writes a line "account NUMBER COUNT" for each. The count follows from the number, so that a
// line shows whether a number was lost or counted twice until then. Arguments of the job change how it behaves: see options.
package double

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the arguments of the job.
type options struct {
	// pause after each number.
	pause time.Duration
	// end after so many numbers, 0 for none.
	end int64
	// broken: the job fails before it is submitted.
	broken bool
	// failing: each start of the tasks fails, before a checkpoint is complete.
	failing bool
	// stuck: checkpoints fail.
	stuck bool
	// unsaved: savepoints fail.
	unsaved bool
}

// Main plays Java with a command line, and returns the exit code.
func Main(args []string, out io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	at := slices.Index(args, "-classpath")
	if at < 0 || len(args) < at+3 {
		_, _ = fmt.Fprintln(out, "want a class path and a main class, as Flink is started")
		return 2
	}
	main, rest := args[at+2], args[at+3:]
	flags := flag.NewFlagSet(main, flag.ContinueOnError)
	flags.SetOutput(out)
	var (
		o                     options
		dir, job, class, from string
	)
	flags.StringVar(&dir, "configDir", "", "folder with config.yaml")
	flags.StringVar(&job, "job-id", "", "identity of the job")
	flags.StringVar(&class, "job-classname", "", "main class of the job")
	flags.StringVar(&from, "fromSavepoint", "", "state to start from")
	flags.Bool("allowNonRestoredState", false, "ignored")
	flags.DurationVar(&o.pause, "pause", 20*time.Millisecond, "time between numbers")
	flags.Int64Var(&o.end, "end", 0, "the first number that is not there")
	flags.BoolVar(&o.broken, "broken", false, "fail at the start")
	flags.BoolVar(&o.failing, "failing", false, "fail soon after each start of the tasks")
	flags.BoolVar(&o.stuck, "stuck", false, "complete no checkpoint")
	flags.BoolVar(&o.unsaved, "unsaved", false, "complete no savepoint")
	if err := flags.Parse(rest); err != nil {
		return 2
	}
	conf, err := read(filepath.Join(dir, "config.yaml"))
	if err != nil {
		_, _ = fmt.Fprintln(out, err)
		return 1
	}
	switch {
	case strings.HasSuffix(main, ".TaskManagerRunner"):
		return taskManager(ctx, conf, out)
	case strings.HasSuffix(main, ".StandaloneApplicationClusterEntryPoint") && o.broken:
		_, _ = fmt.Fprintln(out, "Caused by: java.lang.ClassNotFoundException: "+class)
		return 1
	case strings.HasSuffix(main, ".StandaloneApplicationClusterEntryPoint"):
		return jobManager(ctx, conf, out, o, job, strings.TrimPrefix(from, scheme))
	}
	_, _ = fmt.Fprintln(out, "Error: Could not find or load main class", main)
	return 1
}

// read a configuration: lines of a key and a value in quotes.
func read(file string) (map[string]string, error) {
	raw, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	conf := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		var text string
		if err := json.Unmarshal([]byte(value), &text); !ok || err != nil {
			return nil, fmt.Errorf("cannot understand %q in %s", line, file)
		}
		conf[key] = text
	}
	return conf, nil
}

// taskManager stays connected to the JobManager, with as many slots as it has.
func taskManager(ctx context.Context, conf map[string]string, out io.Writer) int {
	address := net.JoinHostPort(conf["jobmanager.rpc.address"], conf["jobmanager.rpc.port"])
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		_, _ = fmt.Fprintln(out, "registered at", address)
		_, _ = fmt.Fprintln(conn, conf["taskmanager.numberOfTaskSlots"])
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
	return 143
}
