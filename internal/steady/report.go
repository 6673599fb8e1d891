// SPDX-License-Identifier: Apache-2.0

package steady

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Write a result for people: the stages, what comes, changes, restarts and goes in all, the expected pause, where it ends, and what that
// assumes.
func (r *Result) Write(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s/%s\n", at(r.End.XR, "kind"), at(r.End.XR, "metadata", "namespace"), at(r.End.XR, "metadata", "name"))
	if len(r.Stages) == 0 {
		b.WriteString("\nNothing comes, changes or goes.\n")
	}
	for i, s := range r.Stages {
		fmt.Fprintf(&b, "\nStage %d%s\n", i+1, later(s.After))
		lines(&b, "  comes   ", s.Created)
		lines(&b, "  changes ", s.Changed)
		lines(&b, "  restarts", s.Restarted)
		lines(&b, "  goes    ", s.Removed)
	}
	if len(r.Effects) > 0 {
		b.WriteString("\nThe edit\n")
		lines(&b, "  effect  ", r.Effects)
	}
	if r.Pause != "" {
		fmt.Fprintf(&b, "  pause    %s\n", r.Pause)
	}
	sum := r.Sum()
	fmt.Fprintf(&b, "\nIn the end %d objects come, %d change, %d restart and %d go.\n", len(sum.Created), len(sum.Changed), len(sum.Restarted), len(sum.Removed))
	if r.Ready {
		b.WriteString("It is ready.\n")
	} else {
		b.WriteString("It is not ready.\n")
	}
	if len(r.Waits) > 0 {
		b.WriteString("\nNot as it should be\n")
		lines(&b, "  ", r.Waits)
	}
	if len(r.Assumptions) > 0 {
		b.WriteString("\nThis assumes\n")
		lines(&b, "  ", r.Assumptions)
	}
	_, err := io.WriteString(to, b.String())
	if err != nil {
		return fmt.Errorf("cannot write the plan: %w", err)
	}
	return nil
}

// Sum of all stages: what came and went again, as in a change that replaces pods, is in Created and in Removed.
func (r *Result) Sum() Stage {
	var sum Stage
	for _, s := range r.Stages {
		sum.Created = append(sum.Created, s.Created...)
		sum.Changed = append(sum.Changed, s.Changed...)
		sum.Restarted = append(sum.Restarted, s.Restarted...)
		sum.Removed = append(sum.Removed, s.Removed...)
	}
	for _, all := range []*[]string{&sum.Created, &sum.Changed, &sum.Restarted, &sum.Removed} {
		slices.Sort(*all)
		*all = slices.Compact(*all)
	}
	// What restarts changes, too, and what is new changes while it comes up.
	sum.Changed = slices.DeleteFunc(sum.Changed, func(o string) bool { return slices.Contains(sum.Created, o) || slices.Contains(sum.Restarted, o) })
	sum.Restarted = slices.DeleteFunc(sum.Restarted, func(o string) bool { return slices.Contains(sum.Created, o) })
	return sum
}

func lines(b *strings.Builder, label string, all []string) {
	for _, text := range all {
		fmt.Fprintf(b, "%s %s\n", label, text)
	}
}

func later(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(", %s later", d)
}
