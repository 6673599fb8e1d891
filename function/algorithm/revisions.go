// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

// revisions that are kept: the live one, revisions that run or are desired and have served before, and a few earlier ones, so that
// going back finds what served then. It returns the revisions that were live, the latest first.
func revisions(d *compose.Draft, p *pass) ([]string, error) {
	live := p.decision.Ledger.Revision
	numbers := map[string]int64{}
	for resource, o := range p.Observed {
		if hash, ok := strings.CutPrefix(resource, names.RevisionPrefix); ok {
			numbers[hash] = compose.NumberOf(o, 0, "revision")
		}
	}
	for hash, number := range numbers {
		if p.needs(hash, number) {
			d.Keep(names.RevisionPrefix + hash)
		}
	}
	if l := p.decision.Ledger; l.Weight > 0 && l.Testing() {
		if err := pin(d, p, l.Candidate, untried); err != nil {
			return nil, err
		}
	}
	number, err := pinLive(d, p, numbers)
	if err != nil {
		return nil, err
	}
	if _, pinned := numbers[live]; pinned {
		numbers[live] = number
	}
	before := slices.SortedFunc(maps.Keys(numbers), func(a, b string) int {
		return cmp.Or(cmp.Compare(numbers[b], numbers[a]), strings.Compare(a, b))
	})
	var history []string
	others := 0
	for _, hash := range before {
		if numbers[hash] == untried {
			continue
		}
		if !p.needs(hash, numbers[hash]) {
			if others++; others > int(*p.spec.RevisionHistoryLimit) {
				continue
			}
			d.Keep(names.RevisionPrefix + hash)
		}
		history = append(history, hash)
	}
	return history, nil
}

// untried is the number of a revision that was never live. A candidate is pinned with it by its first requests: a pass that others
// follow in any case. An object that comes with promotion would be another generation of the Algorithm, for which Crossplane writes
// conditions twice.
const untried = 0

// needs a revision that is pinned with a number. What a candidate is made of is open again while no request reaches it.
func (p *pass) needs(hash string, number int64) bool {
	l := p.decision.Ledger
	if number == untried && hash != l.Revision {
		return hash == p.decision.Beside.Revision && (l.Weight > 0 || !l.Testing())
	}
	return hash == l.Revision || hash == p.decision.Beside.Revision || hash == p.target.revision
}

// pinLive pins the live revision, and returns its number. One that is live again is the latest again: its number may change, what it
// holds may not.
func pinLive(d *compose.Draft, p *pass, numbers map[string]int64) (int64, error) {
	hash := p.decision.Ledger.Revision
	resource, latest := names.RevisionPrefix+hash, int64(0)
	for _, n := range numbers {
		latest = max(latest, n)
	}
	if number, pinned := numbers[hash]; pinned {
		if number != untried && (hash == p.rollout.Ledger.Revision || number == latest) {
			return number, nil
		}
		again := compose.Keep(p.Observed[resource])
		again["revision"] = latest + 1
		d.Edit(resource, again)
		return latest + 1, nil
	}
	return latest + 1, pin(d, p, hash, latest+1)
}

// pin a revision that is not pinned yet, with a number.
func pin(d *compose.Draft, p *pass, hash string, number int64) error {
	resource := names.RevisionPrefix + hash
	r, ok := p.record(hash)
	if !ok || d.Has(resource) {
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot pin revision %s: %w", hash, err)
	}
	d.Offer(resource, applyappsv1.ControllerRevision(compose.Name(p.Name, hash), p.Namespace).
		WithLabels(p.Labels()).
		WithData(runtime.RawExtension{Raw: raw}).
		WithRevision(number))
	return nil
}

// lingering objects are those that the spec no longer asks for and revisions that are kept still use: a pod that is started again
// needs its config, its claim of devices, its ServiceAccount and its cache.
func lingering(d *compose.Draft, p *pass, history []string) {
	used := map[string]bool{}
	for _, hash := range append([]string{p.decision.Live.Revision, p.decision.Beside.Revision}, history...) {
		if r, ok := p.record(hash); ok {
			uses(r.Template, used)
		}
	}
	for resource, o := range p.Observed {
		lingers := resource == names.ServiceAccount || resource == names.ModelCache ||
			strings.HasPrefix(resource, names.ConfigPrefix) || strings.HasPrefix(resource, names.ClaimPrefix)
		if lingers && !d.Has(resource) && used[compose.TextOf(o, "kind")+"/"+compose.TextOf(o, "metadata", "name")] {
			d.Keep(resource)
		}
	}
}
