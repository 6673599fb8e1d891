// SPDX-License-Identifier: Apache-2.0

// Package watch understands what the ranks of a training write: progress, losses that are no numbers, and lines that mean a fault. It
// also learns how long steps take.
package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/crew"
)

// A Sight is what one line says.
type Sight struct {
	// Advanced reports that Progress has something. A step of -1 is unknown.
	Advanced bool
	Progress crew.Progress
	// Fault that the line means, with the line as its message. Nil: none.
	Fault *Fault
}

// A Fault that a line means.
type Fault struct {
	Class   crew.Class
	Message string
}

// A Watcher understands lines. It is the same for all ranks.
type Watcher struct {
	progress  *regexp.Regexp
	ignoreNaN bool
	faults    []pattern
}

type pattern struct {
	line  *regexp.Regexp
	class crew.Class
}

// New watcher. An error names the field and the pattern that cannot be used.
func New(w crew.Watch) (*Watcher, error) {
	watcher := &Watcher{ignoreNaN: w.IgnoreNonFinite}
	if w.Progress != "" {
		compiled, err := regexp.Compile(w.Progress)
		if err != nil {
			return nil, fmt.Errorf("cannot use watch.progress %q: %w", w.Progress, err)
		}
		if compiled.SubexpIndex("step") < 0 {
			return nil, fmt.Errorf("cannot use watch.progress %q: it has no group (?P<step>…)", w.Progress)
		}
		watcher.progress = compiled
	}
	for _, f := range w.Faults {
		compiled, err := regexp.Compile(f.Pattern)
		if err != nil {
			return nil, fmt.Errorf("cannot use the pattern %q of watch.faults: %w", f.Pattern, err)
		}
		watcher.faults = append(watcher.faults, pattern{line: compiled, class: f.Class})
	}
	return watcher, nil
}

// Output understands a line of output.
func (w *Watcher) Output(line string) Sight {
	var s Sight
	for _, f := range w.faults {
		if f.line.MatchString(line) {
			s.Fault = &Fault{Class: f.class, Message: "wrote a line that means a fault: " + line}
			break
		}
	}
	if w.progress != nil {
		s.Progress, s.Advanced = named(w.progress, line)
	} else {
		s.Progress, s.Advanced = common(line)
	}
	return w.judge(s)
}

// File understands a line of the file of progress. What is no progress is ignored.
func (w *Watcher) File(line []byte) Sight {
	p, ok := parseFile(line)
	return w.judge(Sight{Progress: p, Advanced: ok})
}

// judge the loss.
func (w *Watcher) judge(s Sight) Sight {
	if s.Fault == nil && !w.ignoreNaN && s.Progress.Loss != "" && !Finite(s.Progress.Loss) {
		at := ""
		if s.Progress.Step >= 0 {
			at = fmt.Sprintf(" at step %d", s.Progress.Step)
		}
		s.Fault = &Fault{Class: crew.ClassNonFinite, Message: fmt.Sprintf("has the loss %s%s", s.Progress.Loss, at)}
	}
	return s
}

// named groups of the user's expression.
func named(expression *regexp.Regexp, line string) (crew.Progress, bool) {
	found := expression.FindStringSubmatch(line)
	if found == nil {
		return crew.Progress{}, false
	}
	group := func(name string) string {
		if i := expression.SubexpIndex(name); i >= 0 {
			return strings.TrimSpace(found[i])
		}
		return ""
	}
	return crew.Progress{
		Step: number(group("step")), Of: max(0, number(group("of"))), Loss: group("loss"), Checkpoint: group("checkpoint"),
	}, true
}

// What common trainers print. A number of steps, as in "max_steps: 1000", is no step.
var (
	commonStep = regexp.MustCompile(`(?i)(?:^|[^a-z0-9_-])(?:global[_ ]?|train[_ ]?|training[_ ]?)?(?:step|iteration|iter)['"]?\s*[:=#]?\s*\[?\s*([0-9]{1,18})\s*(?:(?:/|of=?)\s*([0-9]{1,18}))?`)
	commonOf   = regexp.MustCompile(`(?:^|[^a-z0-9_-])of=([0-9]{1,18})`)
	// A bar, as in "12%|█▏    | 120/1000 [00:10<01:20".
	commonBar  = regexp.MustCompile(`[0-9]%\|[^|]*\|\s*([0-9]{1,18})/([0-9]{1,18})\s*\[`)
	commonLoss = regexp.MustCompile(`(?i)(?:^|[^a-z])loss['"]?\s*[:=]?\s*(tensor\([^)]*\)?|[-+]?(?:[0-9]+\.?[0-9]*(?:e[-+]?[0-9]+)?|\.[0-9]+|nan\b|inf\b|infinity\b))`)
	commonSave = regexp.MustCompile(`(?:^|\s)checkpoint=(\S+)`)
	notAStep   = regexp.MustCompile(`(?i)(?:max|total|num|number of|every|per|warmup|warm-up|last|eval|save|logging)[ _-]*$`)
)

func common(line string) (crew.Progress, bool) {
	p := crew.Progress{Step: -1}
	if at := commonStep.FindStringSubmatchIndex(line); at != nil && !notAStep.MatchString(line[:at[0]+1]) {
		p.Step = number(line[at[2]:at[3]])
		if at[4] >= 0 {
			p.Of = max(0, number(line[at[4]:at[5]]))
		}
	} else if bar := commonBar.FindStringSubmatch(line); bar != nil {
		p.Step, p.Of = number(bar[1]), max(0, number(bar[2]))
	}
	if of := commonOf.FindStringSubmatch(line); of != nil && p.Of == 0 {
		p.Of = max(0, number(of[1]))
	}
	if loss := commonLoss.FindStringSubmatch(line); loss != nil {
		p.Loss = loss[1]
	}
	if save := commonSave.FindStringSubmatch(line); save != nil {
		p.Checkpoint = save[1]
	}
	return p, p.Step >= 0 || p.Loss != "" || p.Checkpoint != ""
}

// number of a text, or -1.
func number(text string) int64 {
	n, err := strconv.ParseInt(strings.NewReplacer(",", "", "_", "").Replace(text), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// bare are the numbers that Python's json writes although JSON has none of them.
var bare = regexp.MustCompile(`(:\s*)(NaN|-?Infinity)(\s*[,}])`)

// parseFile understands {"step":1200,"of":60000,"loss":2.31,"checkpoint":"…"}, with numbers as numbers or as text.
func parseFile(line []byte) (crew.Progress, bool) {
	var raw struct {
		Step       json.RawMessage `json:"step"`
		Of         json.RawMessage `json:"of"`
		Loss       json.RawMessage `json:"loss"`
		Checkpoint string          `json:"checkpoint"`
	}
	if bytes.Contains(line, []byte("NaN")) || bytes.Contains(line, []byte("Infinity")) {
		line = bare.ReplaceAll(line, []byte(`$1"$2"$3`))
	}
	if json.Unmarshal(line, &raw) != nil {
		return crew.Progress{}, false
	}
	p := crew.Progress{Step: whole(raw.Step), Of: max(0, whole(raw.Of)), Loss: plain(raw.Loss), Checkpoint: raw.Checkpoint}
	return p, p.Step >= 0 || p.Loss != "" || p.Checkpoint != ""
}

func plain(raw json.RawMessage) string {
	text := strings.Trim(string(raw), `"`)
	if text == "null" || len(text) > 64 {
		return ""
	}
	return text
}

// whole number of 1200, 1200.0 or "1200", or -1.
func whole(raw json.RawMessage) int64 {
	f, err := strconv.ParseFloat(plain(raw), 64)
	if err != nil || !(f >= 0 && f < 1<<53) {
		return -1
	}
	return int64(f)
}
