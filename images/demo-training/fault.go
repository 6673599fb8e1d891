// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A kind of fault.
type kind string

const (
	none kind = ""
	// exit with an error.
	exit kind = "exit"
	// kill is the end by SIGKILL, as for want of memory.
	kill kind = "kill"
	// hang for ever.
	hang kind = "hang"
	// deaf hangs for ever and ignores SIGTERM.
	deaf kind = "deaf"
	// nan is a loss that is not a number.
	nan kind = "nan"
	// slow makes one step take 20 times as long, which is no fault.
	slow kind = "slow"
	// memory takes memory until the system ends it.
	memory kind = "memory"
)

// A fault that happens to a rank at a step.
type fault struct {
	kind kind
	rank int
	step int64
	// attempt, or -1 for each.
	attempt int
}

// parseFaults understands KIND:RANK:STEP and KIND:RANK:STEP:ATTEMPT.
func parseFaults(texts []string) ([]fault, error) {
	var all []fault
	for _, text := range texts {
		parts := strings.Split(text, ":")
		if len(parts) == 3 {
			parts = append(parts, "0")
		}
		if len(parts) != 4 {
			return nil, fmt.Errorf("cannot understand the fault %q: it is KIND:RANK:STEP or KIND:RANK:STEP:ATTEMPT", text)
		}
		if parts[3] == "*" {
			parts[3] = "-1"
		}
		f := fault{}
		var errs [4]error
		f.kind, errs[0] = parseKind(parts[0])
		f.rank, errs[1] = strconv.Atoi(parts[1])
		f.step, errs[2] = strconv.ParseInt(parts[2], 10, 64)
		f.attempt, errs[3] = strconv.Atoi(parts[3])
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("cannot understand the fault %q: %w", text, err)
		}
		all = append(all, f)
	}
	return all, nil
}

func parseKind(text string) (kind, error) {
	switch k := kind(text); k {
	case exit, kill, hang, deaf, nan, slow, memory:
		return k, nil
	default:
		return none, fmt.Errorf("%q is no kind of fault", text)
	}
}

// due is the fault of this rank at a step: one of the flags, or the one in the file fault-RANK of the folder of checkpoints. Reading
// the file removes it, so that the fault happens once.
func (r *rank) due(step int64) kind {
	for _, f := range r.faults {
		if f.rank == r.options.Rank && f.step == step && (f.attempt < 0 || f.attempt == r.options.Attempt) {
			return f.kind
		}
	}
	file := filepath.Join(r.options.Checkpoints, "fault-"+strconv.Itoa(r.options.Rank))
	raw, err := os.ReadFile(filepath.Clean(file))
	if err != nil || os.Remove(file) != nil {
		return none
	}
	k, err := parseKind(strings.TrimSpace(string(raw)))
	if err != nil {
		_, _ = fmt.Fprintf(r.out, "ignored %s: %v\n", file, err)
	}
	return k
}

// strike this rank with a fault that ends it or never returns.
func strike(k kind) error {
	switch k {
	case kill:
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			return err
		}
	case deaf:
		signal.Ignore(syscall.SIGTERM)
	case memory:
		var taken [][]byte
		for range 1 << 20 {
			block := make([]byte, 16<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			taken = append(taken, block)
			time.Sleep(time.Millisecond)
		}
		return fmt.Errorf("took %d blocks of memory and was not ended", len(taken))
	case exit:
		return errors.New("the fault exit is due")
	case none, hang, nan, slow:
	}
	for {
		time.Sleep(time.Hour) // The signal that ends it shows its stack.
	}
}
