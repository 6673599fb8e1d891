// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/hooks"
	"github.com/capstan-dev/capstan/function/database/names"
)

// works are the hooks of a fleet, and what became of their Jobs.
type works struct {
	// before and after are how many hooks the spec has, version tells an edit of them.
	before, after, version int

	// stops reports that the change stops when one fails, smooth that none does.
	stops, smooth bool

	// jobs by their name within the composition.
	jobs map[string]*work

	// ran tells by change which hooks before have run, done by Job that it succeeded.
	ran  map[string]map[string]bool
	done map[string]bool
}

// A work is one Job.
type work struct {
	url, change string

	// left is how many steps it takes yet, fails how it ends.
	left  int
	fails bool
}

func newWorks() works {
	return works{jobs: map[string]*work{}, ran: map[string]map[string]bool{}, done: map[string]bool{}}
}

// url of a hook, which tells it from all others.
func (w *works) url(when string, n int) string {
	return fmt.Sprintf("http://hooks/%s/%d/%d", when, n, w.version)
}

// asked hooks, as the spec has them.
func (w *works) asked() string {
	list := func(when string, n int) string {
		var hooks []string
		for i := range n {
			hooks = append(hooks, fmt.Sprintf(`{name: h%d, http: {url: %q}, onFailure: %s}`, i, w.url(when, i), map[bool]string{true: "Stop", false: "Continue"}[w.stops]))
		}
		return when + ": [" + strings.Join(hooks, ", ") + "]"
	}
	var parts []string
	if w.before > 0 {
		parts = append(parts, list("before", w.before))
	}
	if w.after > 0 {
		parts = append(parts, list("after", w.after))
	}
	return "hooks: {" + strings.Join(parts, ", ") + "}"
}

// launch the Jobs of a plan, and hold them to what must never happen.
func (f *fleet) launch(next map[string]compose.Object, hash string, touched []string) {
	f.t.Helper()
	if next[names.Hooks] == nil {
		f.works.ran = map[string]map[string]bool{}
	}
	for resource := range f.works.jobs {
		if next[resource] == nil {
			delete(f.works.jobs, resource)
		}
	}
	for _, resource := range compose.SortedKeys(next) {
		if !strings.HasPrefix(resource, names.HookPrefix) || f.works.jobs[resource] != nil {
			continue
		}
		w := &work{url: hookURL(next[resource].Map()), change: hash, left: f.r.IntN(4), fails: !f.works.smooth && f.r.IntN(4) == 0}
		f.sayf("hook %s begins", w.url)
		if f.works.done[resource] {
			f.failf("hook %s is run again after it succeeded", w.url)
		}
		for other, j := range f.works.jobs {
			if j.left > 0 {
				f.failf("hook %s begins before %s has ended", w.url, other)
			}
		}
		if strings.Contains(w.url, "/before/") && !f.mayTouch(hash) {
			f.failf("hook %s begins outside of a window, in a freeze, or without an approval: %s", w.url, f.asked())
		}
		if strings.Contains(w.url, "/after/") && (len(touched) > 0 || slices.ContainsFunc(compose.SortedKeys(f.members), func(l string) bool { return f.members[l].ours && f.members[l].down > 0 })) {
			f.failf("hook %s begins before members are done", w.url)
		}
		f.works.jobs[resource] = w
	}
}

// toil is a step of the Jobs.
func (f *fleet) toil() {
	for resource, w := range f.works.jobs {
		if w.left = max(0, w.left-1); w.left > 0 || w.fails && f.works.stops {
			continue
		}
		if f.works.ran[w.change] == nil {
			f.works.ran[w.change] = map[string]bool{}
		}
		f.works.ran[w.change][w.url] = true
		f.works.done[resource] = !w.fails
	}
}

// report the Jobs in their status.
func (f *fleet) report() {
	for resource, w := range f.works.jobs {
		o := f.request.Observed[resource]
		if o == nil {
			continue
		}
		o.Map()["status"] = map[string]any{}
		if w.left == 0 {
			o.Map()["status"] = map[string]any{"conditions": []any{map[string]any{
				"type": map[bool]string{true: "Failed", false: "Complete"}[w.fails], "status": "True", "reason": "BackoffLimitExceeded",
			}}}
		}
	}
}

// rerun a hook that failed, as somebody does who has mended what it is for.
func (f *fleet) rerun() {
	for resource, w := range f.works.jobs {
		if w.left == 0 && w.fails {
			f.sayf("the Job of hook %s is deleted", w.url)
			delete(f.works.jobs, resource)
			delete(f.request.Observed, resource)
		}
	}
}

// tidy away Jobs that succeeded and are known to have, as somebody may do any time.
func (f *fleet) tidy() {
	o := f.request.Observed[names.Hooks]
	if o == nil {
		return
	}
	for resource := range f.works.jobs {
		if id := strings.TrimPrefix(resource, names.HookPrefix); strings.Contains(compose.Text(o.Map(), "data", hooks.KeyHookEnded), id+"=Succeeded") {
			f.sayf("the Job %s is tidied away", resource)
			delete(f.works.jobs, resource)
			delete(f.request.Observed, resource)
		}
	}
}

// hooked tells which hook before has not run for a change whose members are touched.
func (f *fleet) hooked(hash string) {
	f.t.Helper()
	for i := range f.works.before {
		if url := f.works.url("before", i); !f.works.ran[hash][url] {
			f.failf("members are touched before hook %s has run for %s", url, hash)
		}
	}
}

// hookURL that the Job of a hook calls.
func hookURL(job map[string]any) string {
	for _, c := range compose.List(job, "spec", "template", "spec", "containers") {
		for _, v := range compose.List(c.(map[string]any), "env") {
			if e, ok := v.(map[string]any); ok && e["name"] == "CAPSTAN_HOOK_URL" {
				return compose.Text(e, "value")
			}
		}
	}
	return ""
}
