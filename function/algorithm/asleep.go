// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/algorithm/sleep"
	"github.com/capstan-dev/capstan/function/compose"
)

// leastWatch is how long requests go through the activator before replicas end, at least: two looks at the metrics see what comes
// by connections of before.
const leastWatch = 20 * time.Second

// maySleep reports whether the spec wants an idle Algorithm to run no replicas.
func (f *facts) maySleep() bool { return f.spec.Scaling != nil && f.spec.Scaling.MinReplicas == 0 }

// activated reports whether the Algorithm has an activator: it may sleep, or has to wake before it may not.
func (p *pass) activated() bool { return p.maySleep() || p.sleep.State != "" }

// activator that is observed can take requests.
func (f *facts) activatorReady() bool {
	o := f.Observed[names.Activator]
	return o != nil && compose.NumberOf(o, 0, "status", "availableReplicas") > 0
}

// sleepFacts are what decides about the next mark.
func (p *pass) sleepFacts() sleep.Facts {
	live, r := p.live, p.rollout.Route
	if p.accepted() {
		live = p.rollout.Slots[p.decision.Ledger.Slot]
	}
	fs := sleep.Facts{
		Now: p.Now, Ready: p.activatorReady(), Serves: live.Available > 0,
		Routed:    !r.Exists || !r.Known || r.Current && r.Weights[p.Name] > 0,
		IdleSince: p.analysis.IdleSince(), Requested: p.analysis.Requested(),
	}
	if !p.accepted() {
		// Nothing falls asleep, and what sleeps wakes as before.
		fs.Asked = p.mark.State != ""
		fs.IdleSince = time.Time{}
		return fs
	}
	fs.Asked = p.maySleep() && p.observes
	fs.Stopped = p.spec.Scaling == nil && p.rollout.Replicas == 0
	fs.Busy = p.decision.Beside.Revision != "" || p.decision.Coming || p.decision.Ledger.Revision == ""
	if p.maySleep() {
		fs.After = time.Duration(*p.spec.Scaling.IdleAfterSeconds) * time.Second
		fs.Watch = max(2*p.rollout.Interval, leastWatch)
	}
	return fs
}

// rested decision: without replicas while the Algorithm is asleep.
func (p *pass) rested() {
	p.sleep = p.mark.Next(p.sleepFacts())
	if p.sleep.State == sleep.Asleep {
		p.decision.Live.Size = new(int32(0))
	}
}

// rouse an Algorithm whose spec cannot be carried out: what is wrong with the spec says nothing about its requests.
func rouse(d *compose.Draft, p *pass) {
	if p.sleep = p.mark.Next(p.sleepFacts()); p.sleep == p.mark {
		return
	}
	edit(d, names.Service, func(o map[string]any) {
		annotations := compose.Map(o, "metadata", "annotations")
		if annotations == nil {
			annotations = map[string]any{}
			compose.Map(o, "metadata")["annotations"] = annotations
		}
		annotations[names.AnnotationSleep] = p.sleep.Text()
		if !p.sleep.Activated() {
			selector := map[string]any{}
			for k, v := range p.SlotPods(p.rollout.Ledger.Slot) {
				selector[k] = v
			}
			compose.Map(o, "spec")["selector"] = selector
		}
	})
	if p.sleep.State == sleep.Waking {
		edit(d, names.Deployment(p.rollout.Ledger.Slot), func(o map[string]any) { compose.Map(o, "spec")["replicas"] = 1.0 })
		return
	}
	edit(d, names.AwakeService, func(o map[string]any) { delete(compose.Map(o, "spec", "selector"), names.LabelActivator) })
	for _, resource := range []string{names.Route, names.GRPCRoute} {
		edit(d, resource, func(o map[string]any) { weigh(o, p.ServiceOf(p.rollout.Ledger.Slot)) })
	}
}

// weigh the backends of a route, so that all requests reach one Service.
func weigh(route map[string]any, service string) {
	for _, r := range compose.List(route, "spec", "rules") {
		rule, _ := r.(map[string]any)
		for _, v := range compose.List(rule, "backendRefs") {
			b, _ := v.(map[string]any)
			b["weight"] = 0.0
			if compose.Text(b, "name") == service {
				b["weight"] = 100.0
			}
		}
	}
}

// edit a kept object, if there is one.
func edit(d *compose.Draft, resource string, modify func(map[string]any)) {
	if kept, ok := d.Objects()[resource].Object.(map[string]any); ok {
		o := runtime.DeepCopyJSON(kept)
		modify(o)
		d.Edit(resource, o)
	}
}

// asleep reports whether the Algorithm sleeps and why not, or is nil where it may not.
func (p *pass) asleep() *xpv2.Condition {
	if !p.activated() {
		return nil
	}
	not := func(reason xpv2.ConditionReason, message string) *xpv2.Condition {
		return new(compose.False(v1alpha1.TypeAsleep, reason, message))
	}
	switch p.sleep.State {
	case sleep.Asleep:
		return new(compose.True(v1alpha1.TypeAsleep, v1alpha1.ReasonAsleep, asleepMessage))
	case sleep.Waking:
		return not(v1alpha1.ReasonStartingUp, "a replica starts, and requests wait until it is ready")
	case sleep.Drowsy, sleep.Awake:
		// Half a minute between the two is no news: requests are served in both.
	}
	switch {
	case !p.observes:
		return not(v1alpha1.ReasonScaleToZeroUnavailable, "spec.scaling.minReplicas: 0: replicas keep running, because nothing says whether requests come: "+
			rollout.ProviderMissing)
	case !p.activatorReady():
		return not(v1alpha1.ReasonScaleToZeroUnavailable, fmt.Sprintf(
			"spec.scaling.minReplicas: 0: replicas keep running, because the activator that would hold requests is not ready: see Deployment %s "+
				"and the log of its pods; it needs package/platform.yaml of this version and access to the API server", p.ActivatorName()))
	}
	return not(v1alpha1.ReasonAwake, fmt.Sprintf("the Algorithm sleeps once no request has come for %d seconds", *p.spec.Scaling.IdleAfterSeconds))
}

const asleepMessage = "the Algorithm is idle, and no replica runs: the first request starts one, and is held until it is ready"
