// SPDX-License-Identifier: Apache-2.0

//go:build comparison && linux

// Command training runs one training under faults with Capstan's crew, with torchrun, and as a plain Job, and measures how long each takes
// to continue: see README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
)

// The training: a fault strikes in the middle between two checkpoints.
const (
	steps     = 50
	every     = 20
	faultStep = 31
	script    = scriptsDir + "/train.py"
)

// A runner starts the ranks of a member.
type runner func(m *member, o options, train []string) error

var runners = map[string]runner{"capstan": byCapstan, "torchrun": byTorchrun, "job": byJob}

// A fault is how a run is disturbed. What the script does itself is an argument of it; otherwise a member is killed.
type fault struct {
	arg  string
	kill int
}

var faults = map[string]fault{
	"kill":     {arg: "kill:3:" + strconv.Itoa(faultStep)},
	"raise":    {arg: "raise:3:" + strconv.Itoa(faultStep)},
	"hang":     {arg: "hang:3:" + strconv.Itoa(faultStep)},
	"member-0": {kill: 0},
	"member-1": {kill: 1},
}

// A result is what one run showed. Times are in seconds after the fault; -1 is for what did not happen within the limit.
type result struct {
	Runner  string  `json:"runner"`
	Fault   string  `json:"fault"`
	Stopped float64 `json:"stopped"`
	Started float64 `json:"started"`
	Step    float64 `json:"step"`
	// Twice is how many steps were done again.
	Twice int `json:"twice"`
	// Starts of ranks after the fault. Four are enough.
	Starts int `json:"starts"`
	// Members that were started after the fault.
	Members int `json:"members"`
	// Exact: the training ended at its last step, with each step of each rank in its sum exactly once.
	Exact bool `json:"exact"`
}

type options struct {
	rootfs, root, output string
	limit, budget        time.Duration
	pauses               []time.Duration
}

func main() {
	if raw := os.Getenv(asMember); raw != "" {
		fmt.Fprintln(os.Stderr, "cannot become a member:", become(raw))
		os.Exit(1)
	}
	if raw := os.Getenv(asLauncher); raw != "" {
		index, err := strconv.Atoi(raw)
		if err != nil {
			panic(err)
		}
		os.Exit(launch(index, os.Args[1:]))
	}
	var o options
	flag.StringVar(&o.rootfs, "rootfs", "", "root file system with PyTorch")
	flag.StringVar(&o.root, "repository", ".", "folder of the repository")
	flag.StringVar(&o.output, "output", "_output/comparison-training", "folder with the program companion, for logs")
	flag.DurationVar(&o.limit, "limit", 3*time.Minute, "how long a run may take to continue")
	flag.DurationVar(&o.budget, "budget", 20*time.Second, "how long a step may take: Capstan's budget, and gloo's timeout for the others")
	who := flag.String("runners", "capstan,torchrun,job", "what runs the training: capstan, torchrun, job")
	what := flag.String("faults", "kill,raise,member-1,member-0,hang", "faults")
	pauses := flag.String("pauses", "10s,20s,40s", "before a member that has ended is started again")
	repeats := flag.Int("repeats", 3, "runs of each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := all(ctx, os.Stdout, o, strings.Split(*who, ","), strings.Split(*what, ","), strings.Split(*pauses, ","), *repeats)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "training:", err)
		os.Exit(1)
	}
}

// all runs, one after the other. The runners take turns, so that a busy minute of the machine meets all of them.
func all(ctx context.Context, out io.Writer, o options, who, what, pauses []string, repeats int) error {
	for _, p := range pauses {
		d, err := time.ParseDuration(p)
		if err != nil {
			return err
		}
		o.pauses = append(o.pauses, d)
	}
	var err error
	for _, dir := range []*string{&o.rootfs, &o.root, &o.output} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	remove, err := connect(ctx)
	if err != nil {
		return err
	}
	defer remove()
	results, err := take(ctx, out, o, who, what, repeats)
	err = errors.Join(err, table(out, results, who, what))
	inexact := 0
	for _, r := range results {
		if r.Runner == "capstan" && !r.Exact {
			inexact++
		}
	}
	if inexact > 0 {
		err = errors.Join(err, fmt.Errorf("%d of Capstan's runs did not end as they should", inexact))
	}
	return err
}

// take all runs in turns, and return what there is when one of them cannot be made.
func take(ctx context.Context, out io.Writer, o options, who, what []string, repeats int) ([]result, error) {
	var results []result
	for range repeats {
		for _, f := range what {
			for _, r := range who {
				got, err := run(ctx, o, r, f)
				if err != nil {
					return results, fmt.Errorf("%s, %s: %w", r, f, err)
				}
				results = append(results, got)
				if err := json.NewEncoder(out).Encode(got); err != nil {
					return results, fmt.Errorf("cannot print a result: %w", err)
				}
			}
		}
	}
	return results, nil
}

// run a training once.
func run(ctx context.Context, o options, who, what string) (result, error) {
	r := result{Runner: who, Fault: what}
	start, known := runners[who]
	f, strikes := faults[what]
	if !known || !strikes {
		return r, errors.New("there is no such runner, or no such fault")
	}
	shared, err := os.MkdirTemp(o.output, who+"-"+what+"-")
	if err != nil {
		return r, err
	}
	events, err := listen(ctx, filepath.Join(shared, "events.sock"))
	if err != nil {
		return r, err
	}
	defer events.close()
	train := []string{
		"/usr/bin/python3", script, "--steps=" + strconv.Itoa(steps), "--every=" + strconv.Itoa(every),
		"--checkpoints=" + sharedDir, "--events=" + sharedDir + "/events.sock",
	}
	if f.arg != "" {
		train = append(train, "--fault="+f.arg)
	}
	if what == "hang" && who != "capstan" {
		train = append(train, fmt.Sprintf("--timeout=%g", o.budget.Seconds()))
	}
	var k keeper
	over := make(chan struct{})
	defer k.end()
	defer close(over)
	for index := range members {
		m := member{
			Index: index, Rootfs: o.rootfs, Shared: shared, Scratch: filepath.Join(shared, fmt.Sprintf("scratch-%d", index)),
			Scripts: filepath.Join(o.output, "scripts"), Programs: filepath.Join(o.output, "programs"),
		}
		if err := os.Mkdir(m.Scratch, 0o700); err != nil {
			return r, err
		}
		if err := start(&m, o, train); err != nil {
			return r, err
		}
		k.keep(m, filepath.Join(shared, fmt.Sprintf("member-%d.log", index)), o.pauses, over)
	}
	if f.arg == "" {
		if !events.until(ctx, o.limit, func(s *seen) bool { return s.furthest >= faultStep-1 }) {
			return r, errors.New("the training never reached the step of the fault")
		}
		events.mark()
		k.kill(f.kill)
	} else if !events.until(ctx, o.limit, func(s *seen) bool { return !s.fault.IsZero() }) {
		return r, errors.New("the training never reached its fault")
	}
	before := k.count()
	events.until(ctx, o.limit, func(s *seen) bool { return !s.step.IsZero() })
	events.until(ctx, o.limit/2, func(s *seen) bool { return s.step.IsZero() || exact(shared) })
	if err := ctx.Err(); err != nil {
		return r, err //nolint:wrapcheck // It says all there is to say.
	}
	events.fill(&r)
	for index, starts := range k.count() {
		r.Members += starts - before[index]
	}
	r.Exact = exact(shared)
	return r, nil
}

// exact reports whether the result of a training is there, and right.
func exact(shared string) bool {
	raw, err := os.ReadFile(filepath.Join(shared, "result.json")) //nolint:gosec // A folder of this run.
	var result struct {
		Steps int  `json:"steps"`
		Exact bool `json:"exact"`
	}
	return err == nil && json.Unmarshal(raw, &result) == nil && result.Exact && result.Steps == steps
}

// byCapstan starts the companion, with the plan that the function would write.
func byCapstan(m *member, o options, train []string) error {
	plan := crew.Plan{
		Training: "torch", Run: 1, Workers: members, Processes: processes, HostPrefix: "member", Domain: "crew",
		Checkpoints: &crew.Checkpoints{Dir: sharedDir}, Watch: crew.Watch{Phases: crew.Phases{Step: int(o.budget.Seconds())}},
	}
	raw, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	m.Env = []string{"JOB_COMPLETION_INDEX=" + strconv.Itoa(m.Index)}
	m.Command = append([]string{
		programsDir + "/companion", "--termination-log=" + scratchDir + "/last-words", "crew",
		"--plan=" + sharedDir + "/plan.json", "--scratch=" + scratchDir, "--",
	}, train...)
	return os.WriteFile(filepath.Join(m.Shared, "plan.json"), raw, 0o600)
}

// byTorchrun starts torchrun's agent. Its store is on member 0, as its documentation proposes.
func byTorchrun(m *member, _ options, train []string) error {
	// Agents would share their store with the ranks, which want libuv then.
	m.Env = []string{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"}
	m.Command = append([]string{
		"/usr/bin/python3", scriptsDir + "/torchrun.py", "--nnodes=" + strconv.Itoa(members), "--nproc-per-node=" + strconv.Itoa(processes),
		"--max-restarts=3", "--rdzv-id=torch", "--rdzv-backend=c10d", "--rdzv-endpoint=" + host(0) + ":29400",
	}, train[1:]...)
	return nil
}

// byJob starts the ranks and nothing else.
func byJob(m *member, _ options, train []string) error {
	m.Env = []string{asLauncher + "=" + strconv.Itoa(m.Index)}
	m.Command = append([]string{self}, train...)
	return nil
}

// table of the results: the median and the worst of each.
func table(out io.Writer, results []result, who, what []string) error {
	var text strings.Builder
	text.WriteString("\n| fault | | all ranks have stopped | all ranks have started | first step | steps done twice | starts of ranks | exact |\n|---|---|---|---|---|---|---|---|\n")
	for _, f := range what {
		for _, r := range who {
			var stopped, started, step, twice, starts []float64
			n, right := 0, 0
			for _, got := range results {
				if got.Runner != r || got.Fault != f {
					continue
				}
				n++
				if got.Exact {
					right++
				}
				stopped, started, step = append(stopped, got.Stopped), append(started, got.Started), append(step, got.Step)
				twice, starts = append(twice, float64(got.Twice)), append(starts, float64(got.Starts))
			}
			fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s | %d of %d |\n", f, r, both(stopped), both(started), both(step), both(twice), both(starts), right, n)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// both the median and the worst.
func both(all []float64) string {
	for i, v := range all {
		if v < 0 {
			all[i] = math.Inf(1)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g, %.3g", all[(len(all)-1)/2], all[len(all)-1])
}
