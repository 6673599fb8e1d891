// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// withholdFor is how long a refused object is left out. Each try costs one pass that ends early.
const withholdFor = time.Minute

// maxRefusal is the longest refusal that is remembered, in bytes.
const maxRefusal = 512

// Words of Crossplane's condition Synced. The condition of an earlier pass is all that a function learns of a refusal.
const (
	syncedComposed = `composed resource "`
	syncedInvalid  = "Unsynced resources: "
)

// takeoverDenied precedes what the policy capstan-takeover of package/platform.yaml has to say. It says all of it.
const (
	takeoverDenied = "ValidatingAdmissionPolicy 'capstan-takeover' with binding 'capstan-takeover' denied request: "
	takeoverRemedy = "with the annotation " + annotationAdopt + "="
)

// Withholding is the memory of refused objects.
//
// Crossplane applies composed objects one by one in no order. When the API
// server finds one invalid, Crossplane continues. Any other refusal ends the pass:
// a random part of the rest is not applied, no status is written, and the condition Synced names the one object that was refused.
// So that one is left out for a while, the rest gets applied, and the status can report it.
//
// The memory is in the status, which the pass that learns of a refusal has to write. It would not if another new object were
// refused as well, and two refused objects would take turns for ever. So that one pass asks for nothing new at all. What is
// observed is never left out: while a change of it is refused, it is kept as it is.
type Withholding struct {
	observed map[string]Object
	entries  map[string]v1alpha1.Withheld
	learning bool
	invalid  []string
}

// Withhold what was refused, going by the condition Synced of the composite resource and by what its status remembers.
func Withhold(r Request) *Withholding {
	w := &Withholding{observed: r.Observed, entries: map[string]v1alpha1.Withheld{}}
	xr := r.Composite.Map()
	for _, e := range Withheld(xr) {
		// A time further away than is ever set was set by a clock gone wrong.
		if left := e.Until.Sub(r.Now); left > 0 && left <= 2*withholdFor {
			w.entries[e.Resource] = e
		}
	}
	for name, refusal := range takeovers(r) {
		w.remember(r, name, refusal)
	}
	synced := Condition(xr, "Synced")
	if synced["status"] != "False" {
		return w
	}
	message := Text(synced, "message")
	if names, ok := strings.CutPrefix(message, syncedInvalid); ok {
		w.invalid = strings.Split(strings.ReplaceAll(names, ", and ", ", "), ", ")
		return w
	}
	name, refusal, ok := refusalIn(message)
	if _, known := w.entries[name]; !ok || known {
		return w
	}
	w.learning = true
	w.remember(r, name, refusal)
	return w
}

// remember a new refusal for a while.
func (w *Withholding) remember(r Request, name, refusal string) {
	w.entries[name] = v1alpha1.Withheld{
		Resource: name,
		Message:  refusal,
		Until:    metav1.NewTime(r.Now.Add(withholdFor).UTC().Truncate(time.Second)),
	}
}

// LeavesOut reports whether this plan must leave an object out.
func (w *Withholding) LeavesOut(name string) bool {
	if w.observed[name] != nil {
		return false
	}
	_, refused := w.entries[name]
	return refused || w.learning
}

// Keeps reports whether an observed object must be kept as it is, because a change of it was refused.
func (w *Withholding) Keeps(name string) bool {
	_, refused := w.entries[name]
	return refused && w.observed[name] != nil
}

// Refusal is why the API server refused an object, or "".
func (w *Withholding) Refusal(name string) string { return w.entries[name].Message }

// Invalid reports whether the API server found an object invalid. Why it did is in an event only, because the words change from try
// to try.
func (w *Withholding) Invalid(name string) bool { return slices.Contains(w.invalid, name) }

// Entries for the status, of objects that are still desired, by name.
func (w *Withholding) Entries(asked []Asked) []v1alpha1.Withheld {
	var es []v1alpha1.Withheld
	for _, a := range asked {
		if e, ok := w.entries[a.Resource]; ok {
			es = append(es, e)
		}
	}
	slices.SortFunc(es, func(a, b v1alpha1.Withheld) int { return strings.Compare(a.Resource, b.Resource) })
	return es
}

// changed reports whether what is remembered differs from what the status holds. That is urgent: Crossplane reports a refusal
// once.
func (w *Withholding) changed(r Request, asked []Asked) bool {
	return !slices.EqualFunc(w.Entries(asked), Withheld(r.Composite.Map()), func(a, b v1alpha1.Withheld) bool {
		return a.Resource == b.Resource && a.Message == b.Message && a.Until.Equal(&b.Until)
	})
}

// Withheld entries of a status. What cannot be read is forgotten, and asked for again.
func Withheld(xr map[string]any) []v1alpha1.Withheld {
	list := List(xr, "status", "withheld")
	if len(list) == 0 {
		return nil
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	var es []v1alpha1.Withheld
	if err := json.Unmarshal(raw, &es); err != nil {
		return nil
	}
	return es
}

// refusalIn a message such as
//
//	cannot compose resources: cannot apply composed resource "x": … is forbidden: …
//
// The words after the name are kept. Crossplane appends its own review of what it may do, which says the same at length.
func refusalIn(message string) (name, refusal string, ok bool) {
	_, rest, ok := strings.Cut(message, syncedComposed)
	if !ok {
		return "", "", false
	}
	name, refusal, ok = strings.Cut(rest, `"`)
	refusal, _, _ = strings.Cut(refusal, "\n")

	// Two errors in one: [… composed resource "x": …, NAME is not allowed to [get, …] resource …]
	if before, _, found := strings.Cut(refusal, " is not allowed to ["); found {
		refusal = before[:max(strings.LastIndex(before, ", "), 0)]
	}

	// … composed resource "x" is namespaced (a Kind named y): no matches for kind …
	if _, after, found := strings.Cut(refusal, "): "); found && strings.HasPrefix(refusal, " is namespaced (") {
		refusal = after
	}

	// … denied request: NAME exists …
	if _, after, found := strings.Cut(refusal, takeoverDenied); found {
		refusal = after
	}
	return name, shortened(strings.TrimLeft(refusal, ": "), maxRefusal), ok && name != ""
}

// shortened text of at most n bytes that ends with a whole character.
func shortened(s string, n int) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) <= n {
		return s
	}
	s = s[:n-len("…")]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
