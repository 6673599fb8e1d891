// SPDX-License-Identifier: Apache-2.0

// Package logs merges the logs of several containers by the time of their lines.
package logs

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Source is the log of one container. Its lines begin with their time in RFC 3339, as the API server writes them on request.
type Source struct {
	// Name is the prefix of its lines.
	Name string

	// Open the log: all there is, or from the line after since on, and with follow also what comes later.
	Open func(ctx context.Context, since time.Time, follow bool) (io.ReadCloser, error)
}

// A line of a log.
type line struct {
	at   time.Time
	from string
	text string
}

// longest line that is read as a whole.
const longest = 1 << 20

// Print what there is of all sources, in the order of time. A source that cannot be read is reported to failed, and the others are printed.
func Print(ctx context.Context, out io.Writer, sources []Source, failed func(error)) error {
	width := wide(sources)
	heads := make([]*head, 0, len(sources))
	for _, s := range sources {
		r, err := s.Open(ctx, time.Time{}, false)
		if err != nil {
			failed(fmt.Errorf("cannot read the log of %s: %w", s.Name, err))
			continue
		}
		defer func() { _ = r.Close() }()
		h := &head{scanner: scan(r), from: s.Name}
		if h.next() {
			heads = append(heads, h)
		}
	}
	for len(heads) > 0 {
		i := 0
		for j, h := range heads {
			if h.at.Before(heads[i].at) {
				i = j
			}
		}
		if err := write(out, heads[i].line, width); err != nil {
			return err
		}
		if !heads[i].next() {
			heads = slices.Delete(heads, i, i+1)
		}
	}

	return nil
}

// A head is the first line of a log that is not printed yet.
type head struct {
	line

	scanner *bufio.Scanner
	from    string
}

func (h *head) next() bool {
	if !h.scanner.Scan() {
		return false
	}
	h.line = parse(h.scanner.Text(), h.from, h.at)

	return true
}

func scan(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), longest)

	return s
}

// parse a line with its time. One without a time belongs to the line before.
func parse(text, from string, before time.Time) line {
	stamp, rest, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return line{at: before, from: from, text: text}
	}

	return line{at: at, from: from, text: rest}
}

func wide(sources []Source) int {
	width := 0
	for _, s := range sources {
		width = max(width, len(s.Name))
	}

	return width
}

func write(out io.Writer, l line, width int) error {
	if _, err := fmt.Fprintf(out, "%-*s  %s  %s\n", width, l.from, l.at.UTC().Format("15:04:05.000"), l.text); err != nil {
		return fmt.Errorf("cannot write the log: %w", err)
	}

	return nil
}

// Times of Follow.
const (
	// together is how long lines are collected, so that lines of different sources are sorted.
	together = 500 * time.Millisecond
	// again is how often sources are listed, and ended ones opened once more: a container may have restarted.
	again = 2 * time.Second
)

// Follow what sources there are and what they write, until the context ends. Sources are listed time after time, so that pods that are
// created later are followed, too. A source that cannot be read is reported once, and tried again.
func Follow(ctx context.Context, out io.Writer, list func(context.Context) ([]Source, error), failed func(error)) error {
	f := &streams{lines: make(chan line), last: map[string]time.Time{}, open: map[string]bool{}, told: map[string]bool{}, failed: failed}
	var readers sync.WaitGroup
	defer readers.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	collect, look := time.NewTicker(together), time.NewTicker(again)
	defer collect.Stop()
	defer look.Stop()

	var batch []line
	width := 0
	begin := func() {
		sources, err := list(ctx)
		if err != nil {
			f.tell("", err)

			return
		}
		width = max(width, wide(sources))
		for _, s := range sources {
			if f.begin(s.Name) {
				readers.Go(func() { f.read(ctx, s) })
			}
		}
	}
	begin()
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-f.lines:
			batch = append(batch, l)
		case <-look.C:
			begin()
		case <-collect.C:
			slices.SortStableFunc(batch, func(a, b line) int { return cmp.Or(a.at.Compare(b.at)) })
			for _, l := range batch {
				if err := write(out, l, width); err != nil {
					return err
				}
			}
			batch = nil
		}
	}
}

// streams are sources that are read at the same time.
type streams struct {
	lines  chan line
	failed func(error)

	mu   sync.Mutex
	last map[string]time.Time
	open map[string]bool
	told map[string]bool
}

// begin to read a source, unless that happens already.
func (f *streams) begin(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.open[name]
	f.open[name] = true

	return !was
}

func (f *streams) tell(name string, err error) {
	f.mu.Lock()
	was := f.told[name+err.Error()]
	f.told[name+err.Error()] = true
	f.mu.Unlock()
	if !was {
		f.failed(err)
	}
}

func (f *streams) read(ctx context.Context, s Source) {
	f.mu.Lock()
	last := f.last[s.Name]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.last[s.Name], f.open[s.Name] = last, false
		f.mu.Unlock()
	}()
	r, err := s.Open(ctx, last, true)
	if err != nil {
		if ctx.Err() == nil {
			f.tell(s.Name, fmt.Errorf("cannot read the log of %s: %w", s.Name, err))
		}

		return
	}
	defer func() { _ = r.Close() }()
	for lines, before := scan(r), last; lines.Scan(); {
		l := parse(lines.Text(), s.Name, last)
		// The API server knows times to the second only, so that it sends some lines twice.
		if !l.at.After(before) && !before.IsZero() {
			continue
		}
		last = l.at
		select {
		case f.lines <- l:
		case <-ctx.Done():
			return
		}
	}
}
