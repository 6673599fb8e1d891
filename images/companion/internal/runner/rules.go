// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/runner"
)

// Defaults of the plan.
const (
	usualAttempts = 3
	usualReset    = 3600
	usualGrace    = 30
)

// patternWithin is how long a line counts that a pattern matched: what a program wrote hours before is not why it fails.
const patternWithin = 10 * time.Minute

// withDefaults fills in what the plan leaves out.
func withDefaults(p runner.Plan) runner.Plan {
	p.GraceSeconds = cmp.Or(p.GraceSeconds, usualGrace)
	p.Retry.Attempts = cmp.Or(p.Retry.Attempts, usualAttempts)
	p.Retry.ResetSeconds = cmp.Or(p.Retry.ResetSeconds, usualReset)
	if p.Retry.Backoff == (runner.Backoff{}) {
		p.Retry.Backoff = runner.Backoff{FromSeconds: 10, ToSeconds: 600, Factor: 2, JitterPercent: 20}
	}
	return p
}

// rules of a plan, with their budgets. They count failures in a row.
type rules struct {
	retry    runner.Retry
	patterns []*regexp.Regexp // of each rule, or nil
	random   func() float64

	// failed counts failures of each rule that has attempts of its own; the last counts all others.
	failed []int

	mu      sync.Mutex
	matched string
	at      time.Time
}

// newRules errs for a pattern that cannot be used.
func newRules(r runner.Retry, random func() float64) (*rules, error) {
	out := &rules{retry: r, random: random, failed: make([]int, len(r.Rules)+1)}
	for _, rule := range r.Rules {
		var compiled *regexp.Regexp
		if rule.Pattern != "" {
			var err error
			if compiled, err = regexp.Compile(rule.Pattern); err != nil {
				return nil, fmt.Errorf("cannot use the pattern %q of a retry rule: %w", rule.Pattern, err)
			}
		}
		out.patterns = append(out.patterns, compiled)
	}
	return out, nil
}

// line of output. The first one that a pattern matches counts: it is nearest to the cause.
func (r *rules) line(text string, now time.Time) {
	if !slices.ContainsFunc(r.patterns, func(p *regexp.Regexp) bool { return p != nil && p.MatchString(text) }) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.matched == "" || now.Sub(r.at) > patternWithin {
		r.matched, r.at = text, now
	}
}

// begin an attempt: what was written before does not count.
func (r *rules) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.matched = ""
}

// oldest line that a pattern matched, or empty.
func (r *rules) oldest(now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.at) > patternWithin {
		return ""
	}
	return r.matched
}

// A verdict is what follows a failure.
type verdict struct {
	action runner.Action
	// pause before the next attempt.
	pause time.Duration
	// why the run ends, for people. Empty when it does not.
	why string
	// line that a pattern matched, which then is the cause.
	line string
}

// judge a failure of a process that ran for some time.
func (r *rules) judge(f runner.Failure, ran time.Duration, now time.Time) verdict {
	if ran.Seconds() >= r.retry.ResetSeconds {
		clear(r.failed)
	}
	line := r.oldest(now)
	for i, rule := range r.retry.Rules {
		if !r.matches(i, f, line) {
			continue
		}
		v := verdict{action: rule.Do}
		if rule.Pattern != "" {
			v.line = line
		}
		switch rule.Do {
		case runner.ActionFail:
			v.why = fmt.Sprintf("rule %d of spec.retry.rules ends the run", i+1)
		case runner.ActionMemory:
		default:
			budget, limit := len(r.failed)-1, r.retry.Attempts
			if rule.Attempts > 0 {
				budget, limit = i, rule.Attempts
			}
			backoff := r.retry.Backoff
			if rule.Backoff != nil {
				backoff = *rule.Backoff
			}
			r.count(&v, budget, limit, backoff)
		}
		return v
	}
	v := verdict{action: runner.ActionRetry}
	r.count(&v, len(r.failed)-1, r.retry.Attempts, r.retry.Backoff)
	return v
}

// matches reports whether all conditions of a rule hold.
func (r *rules) matches(i int, f runner.Failure, line string) bool {
	rule := r.retry.Rules[i]
	return (len(rule.ExitCodes) == 0 || slices.Contains(rule.ExitCodes, f.ExitCode)) &&
		(rule.Class == "" || rule.Class == f.Class) &&
		(r.patterns[i] == nil || line != "" && r.patterns[i].MatchString(line))
}

// count a failure in a budget, which is an index of failed. Where the limit is reached, the run ends.
func (r *rules) count(v *verdict, budget, limit int, b runner.Backoff) {
	r.failed[budget]++
	if r.failed[budget] >= limit {
		v.action, v.why = runner.ActionFail, fmt.Sprintf("it failed %d times in a row, and no other attempt is allowed", r.failed[budget])
		if limit == 1 {
			v.why = "no other attempt is allowed"
		}
		return
	}
	seconds := min(b.FromSeconds*math.Pow(max(1, b.Factor), float64(r.failed[budget]-1)), b.ToSeconds)
	seconds *= 1 + (2*r.random()-1)*float64(b.JitterPercent)/100
	v.pause = time.Duration(max(0, seconds) * float64(time.Second))
}
