// SPDX-License-Identifier: Apache-2.0

// Command watch shows the rollout of an Algorithm on one screen that is redrawn every second, or, where there is no screen,
// as a line for each change:
//
//	go run ./watch --namespace demo --algorithm reco                                     until it is interrupted
//	go run ./watch --namespace demo --algorithm reco --until Stable,RolledBack --for 5m  until the rollout has come there
//
// It reads the cluster of KUBECONFIG through kubectl, which has to be in PATH; for the embedded cluster run it by
// ./hack/capstan-cluster exec.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sys/unix"
)

// every is how often it looks.
const every = time.Second

type command struct {
	Namespace string        `default:"default"                                                                                       help:"Namespace of the Algorithm."                                                                             short:"n"`
	Algorithm string        `help:"Name of the Algorithm."                                                                           required:""`
	Until     []string      `enum:"Bootstrapping,Stable,Preparing,Stepping,Holding,Promoting,Baking,Draining,RollingBack,RolledBack" help:"Phases of the rollout at which it ends. Those from before the latest edit of the spec do not count."     placeholder:"PHASE"`
	After     string        `default:""                                                                                              enum:",Bootstrapping,Stable,Preparing,Stepping,Holding,Promoting,Baking,Draining,RollingBack,RolledBack"       help:"Phase that has to end before the phases of --until count, for an edit whose effect takes a moment." placeholder:"PHASE"`
	For       time.Duration `default:"0s"                                                                                            help:"How long to watch. With --until it is an error when the time is over. Default: until it is interrupted."`
}

func main() {
	var c command
	kong.Parse(&c, kong.Name("watch"), kong.Description("Show the rollout of an Algorithm."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "watch:", err)
		os.Exit(1)
	}
}

func (c *command) run(ctx context.Context, out *os.File) error {
	api, err := dial(ctx)
	if err != nil {
		return err
	}
	defer api.close()

	return c.follow(ctx, out, width(out), func(ctx context.Context) (view, error) { return api.look(ctx, c.Namespace, c.Algorithm) })
}

// follow what is seen until the phase that is waited for. Without a width there is no screen.
func (c *command) follow(ctx context.Context, out io.Writer, columns int, look func(context.Context) (view, error)) error {
	over := ctx
	if c.For > 0 {
		var cancel context.CancelFunc
		over, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	show := lines(out)
	if columns > 0 {
		show = screen(out, columns)
	}
	began := time.Now()
	last := ""
	left := c.After == ""
	for {
		v, err := look(over)
		switch {
		case over.Err() != nil:
		case err != nil:
			last = err.Error()
			show(view{trouble: last}, time.Since(began))
		default:
			last = "the rollout is " + v.phase()
			show(v, time.Since(began))
			left = left || v.phase() != c.After
			if left && v.current() && slices.Contains(c.Until, v.phase()) {
				return nil
			}
		}
		select {
		case <-over.Done():
			if ctx.Err() == nil && len(c.Until) > 0 {
				return fmt.Errorf("not %s after %s: %s", strings.Join(c.Until, " or "), c.For, last)
			}

			return nil
		case <-time.After(every):
		}
	}
}

// screen draws over what it drew before.
func screen(out io.Writer, columns int) func(view, time.Duration) {
	drawn := 0

	return func(v view, _ time.Duration) {
		var b strings.Builder
		if drawn > 0 {
			fmt.Fprintf(&b, "\x1b[%dA", drawn)
		}
		picture := draw(v, columns)
		for _, l := range picture {
			b.WriteString("\r" + l + "\x1b[K\n")
		}
		// What is left of a longer picture.
		b.WriteString("\x1b[J")
		drawn = len(picture)
		_, _ = io.WriteString(out, b.String())
	}
}

// lines are written when something has changed.
func lines(out io.Writer) func(view, time.Duration) {
	last := ""

	return func(v view, since time.Duration) {
		if l := line(v); l != last {
			last = l
			_, _ = fmt.Fprintf(out, "%6.1f s  %s\n", since.Seconds(), l)
		}
	}
}

// width of the screen in columns, and 0 when there is none.
func width(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || os.Getenv("TERM") == "dumb" {
		return 0
	}
	if size.Col == 0 {
		return 100
	}

	return int(size.Col)
}
