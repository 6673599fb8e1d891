// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A Result is what rank 0 says at the end.
type Result struct {
	// Steps that the training has.
	Steps int64 `json:"steps"`
	// World is the number of ranks.
	World int `json:"world"`
	// Attempt that ended it, from 0.
	Attempt int `json:"attempt"`
	// Counted is how many steps the sum has, by the training's own account.
	Counted int64 `json:"counted"`
	// Sum of all ranks and steps, and what it has to be.
	Sum  uint64 `json:"sum"`
	Want uint64 `json:"want"`
	// Exact reports that each step of each rank was counted exactly once.
	Exact bool `json:"exact"`
}

// run a rank to the end of the training, and return its exit code.
func run(ctx context.Context, o Options, out io.Writer, leaving func() bool) (int, error) {
	faults, err := parseFaults(o.Fault)
	if err != nil {
		return 2, err
	}
	time.Sleep(o.Start)
	s, err := load(o)
	if err != nil {
		return 1, err
	}
	joining, cancel := context.WithTimeout(ctx, o.Join)
	defer cancel()
	g, err := join(joining, o.Rank, o.World, o.Attempt, o.Address, o.Port)
	if err != nil {
		return 1, err
	}
	defer g.close()
	r := rank{options: o, group: g, out: out, faults: faults, leaving: leaving}
	if o.Rank == 0 && s.Step > 0 {
		if _, err := fmt.Fprintf(out, "resumed after step %d from %s\n", s.Step, o.Resume); err != nil {
			return 1, err
		}
	}
	return r.train(ctx, s)
}

// A state is what the training has learned.
type state struct {
	// Step that was completed last.
	Step int64 `json:"step"`
	// Counted steps, which differs from Step if one was counted twice.
	Counted int64 `json:"counted"`
	// Sum over steps and ranks.
	Sum uint64 `json:"sum"`
	// World is the number of ranks.
	World int `json:"world"`
}

type rank struct {
	options Options
	group   *group
	out     io.Writer
	faults  []fault
	leaving func() bool
}

// compute a step, with the fault that is due. It returns the loss.
func (r *rank) compute(step int64) (string, error) {
	loss, pause := strconv.FormatFloat(4/(1+float64(step)/10), 'g', 4, 64), r.options.Step
	switch kind := r.due(step); kind {
	case none:
	case nan:
		loss = "nan"
	case slow:
		pause *= 20
	default:
		if err := strike(kind); err != nil {
			return "", err
		}
	}
	time.Sleep(pause)
	return loss, nil
}

// train from a state to the last step.
func (r *rank) train(ctx context.Context, s state) (int, error) {
	o := r.options
	saved := time.Now()
	for s.Step < o.Steps {
		step := s.Step + 1
		loss, err := r.compute(step)
		if err != nil {
			return 3, err
		}
		// Rank 0 decides when it is time, because each rank has a clock of its own.
		save := o.Rank == 0 && o.Interval > 0 && time.Since(saved) >= time.Duration(o.Interval)*time.Second
		all, err := r.group.add(contribution{Rank: o.Rank, Step: step, Value: value(o.Rank, step), Leaving: r.leaving(), Save: save})
		if err != nil {
			return 1, err
		}
		s = state{Step: step, Counted: s.Counted + 1, Sum: s.Sum + all.Value, World: o.World}
		if err := r.report(progress{Step: step, Of: o.Steps, Loss: loss}); err != nil {
			return 1, err
		}
		if o.Every > 0 && (all.Save || o.Interval == 0 && step%o.Every == 0 || step == o.Steps || all.Leaving) {
			if err := r.checkpoint(s); err != nil {
				return 1, err
			}
			saved = time.Now()
		}
		if all.Leaving && step < o.Steps {
			return terminated, nil
		}
	}
	return r.conclude(ctx, s)
}

// conclude compares the sum with what it has to be.
func (r *rank) conclude(ctx context.Context, s state) (int, error) {
	o := r.options
	if o.Rank != 0 {
		return 0, nil
	}
	result := Result{Steps: o.Steps, World: o.World, Attempt: o.Attempt, Counted: s.Counted, Sum: s.Sum, Want: want(o.World, o.Steps)}
	result.Exact = result.Sum == result.Want && result.Counted == result.Steps
	raw, err := json.Marshal(result)
	if err != nil {
		return 1, err
	}
	if _, err := fmt.Fprintf(r.out, "%s\n", raw); err != nil {
		return 1, err
	}
	if err := write(filepath.Join(o.Checkpoints, "result.json"), raw); err != nil {
		return 1, fmt.Errorf("cannot write the result: %w", err)
	}
	if !result.Exact {
		return 1, fmt.Errorf("the sum is %d and has to be %d: steps were lost or counted twice", result.Sum, result.Want)
	}
	if o.Export != "" {
		if err := export(ctx, o, s); err != nil {
			return 1, err
		}
	}
	return 0, nil
}

// progress is a line, as the crew understands it.
type progress struct {
	Step       int64  `json:"step"`
	Of         int64  `json:"of,omitempty"`
	Loss       string `json:"loss,omitempty"`
	Checkpoint string `json:"checkpoint,omitempty"`
}

// report progress in the output and, if there is one, in the file for it.
func (r *rank) report(p progress) error {
	line := fmt.Sprintf("step=%d of=%d loss=%s", p.Step, p.Of, p.Loss)
	if p.Checkpoint != "" {
		line = fmt.Sprintf("step=%d of=%d checkpoint=%s", p.Step, p.Of, p.Checkpoint)
	}
	if _, err := fmt.Fprintln(r.out, line); err != nil {
		return fmt.Errorf("cannot report progress: %w", err)
	}
	if r.options.Progress == "" || r.options.Report == "Output" {
		return nil
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("cannot report progress: %w", err)
	}
	f, err := os.OpenFile(r.options.Progress, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot report progress: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("cannot report progress: %w", err)
	}
	return nil
}

// value that a rank adds at a step: a mix of both, by the finalizer of SplitMix64, so that no other steps have the same sum by chance.
func value(rank int, step int64) uint64 {
	x := uint64(rank)<<40 + uint64(step)*0x9e3779b97f4a7c15 //nolint:gosec // Neither is negative.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// want is the sum of all ranks and steps.
func want(world int, steps int64) uint64 {
	var sum uint64
	for step := int64(1); step <= steps; step++ {
		for rank := range world {
			sum += value(rank, step)
		}
	}
	return sum
}
