// SPDX-License-Identifier: Apache-2.0

// Command companion runs beside algorithms in their pods. As an init container it brings a model onto a volume, verified:
//
//	companion fetch --source=s3://models/reco/7 --cache=/cache --key=reco-7-1a2b3c4d
//
// or verifies one that is there:
//
//	companion verify --model=/model --digest=sha256:…
//
// As a sidecar it warms the server up before clients reach it:
//
//	companion warm-up --url=http://127.0.0.1:8080/predict --requests=50
//
// In pods of its own it takes the requests for an Algorithm that is asleep, and holds them until a replica serves:
//
//	companion hold --upstream=reco-slot-live.demo.svc:80 --analysis=reco --namespace=demo
//
// As the first process of the pods of a Training it starts the ranks, all together, and again after a fault; it comes there by install:
//
//	companion install --to=/capstan/bin
//	companion crew -- python train.py
//
// As the first process of the pods of a Pipeline it starts the program, and again by the rules of its plan:
//
//	companion run -- python features.py
//
// It is the first process of the pods of a stream with Apache Flink, too:
//
//	companion flink jobmanager
//	companion flink taskmanager
//
// And for people and pipelines it prints a model's digest:
//
//	companion digest ./model
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

// version is set by the linker.
var version = "unknown"

type cli struct {
	Fetch   fetchCmd   `cmd:"" help:"Download a model onto a volume, unless it is there, and verify it."`
	Verify  verifyCmd  `cmd:"" help:"Verify a model that is there."`
	WarmUp  warmUpCmd  `cmd:"" help:"Send requests to a server until it is warm, and report whether it is."          name:"warm-up"`
	Hold    holdCmd    `cmd:"" help:"Hold requests for an Algorithm that is asleep, and wake it."`
	Crew    crewCmd    `cmd:"" help:"Run the ranks of a training in this pod, together with those in other pods."`
	Run     runCmd     `cmd:"" help:"Run the program of a pipeline in this pod, and again by the rules of its plan."`
	Flink   flinkCmd   `cmd:"" help:"Run Flink in this pod of a stream."`
	Install installCmd `cmd:"" help:"Copy this program into a folder."`
	Digest  digestCmd  `cmd:"" help:"Print the digest of a model in a folder."`

	TerminationLog string `default:"/dev/termination-log" env:"TERMINATION_LOG" help:"File for the last words of a program that fails."`
}

// interrupted is the exit code of a program that a signal ends.
const interrupted = 128 + int(syscall.SIGTERM)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run the program and return its exit code.
func run(args []string, stdout, stderr io.Writer) int {
	// Others must read what we write, with any umask of the container.
	syscall.Umask(0o002)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("companion"), kong.Description("Fetches models, warms servers up, and runs trainings and pipelines."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(stdout, (*io.Writer)(nil)), kong.Bind(log, &c))
	if err != nil {
		return die(stderr, "", failure.PlainWords(fmt.Errorf("cannot understand the command line: %w", err)))
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited // help was requested
	}
	if err != nil {
		return die(stderr, c.TerminationLog, failure.LastWords(&failure.Failure{
			Reason: failure.Invalid, Cause: "cannot understand the command line: " + err.Error(), Remedy: "see companion --help", Err: err,
		}))
	}
	err = command.Run()
	var ended exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return ended.code
	case ctx.Err() != nil:
		log.Info("ended by a signal")
		return interrupted
	}
	words := failure.LastWords(err)
	if runsPrograms(command.Command()) {
		words = failure.PlainWords(err)
	}
	return die(stderr, c.TerminationLog, words)
}

// runsPrograms reports whether a command is the first process of pods that run what a user brings, or prepares them. What fails there is
// not a model's download, so it has none of the reasons that Analysis repeats.
func runsPrograms(command string) bool {
	first, _, _ := strings.Cut(command, " ")
	return slices.Contains([]string{"crew", "run", "flink", "install"}, first)
}

// die with last words.
func die(stderr io.Writer, file, words string) int {
	_, _ = fmt.Fprintln(stderr, words)
	leave(file, []byte(words))
	return 1
}

// leave last words. The kubelet makes the file. Outside of pods there is none, and no need for one.
func leave(file string, words []byte) {
	if f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0); err == nil { //nolint:gosec // It was named to us.
		_, _ = f.Write(words)
		_ = f.Close()
	}
}
