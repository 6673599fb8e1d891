// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"errors"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

func TestHealth(t *testing.T) {
	pull := observev1alpha1.Finding{Reason: "ImagePullFailed", Message: "the image cannot be pulled", Slot: "a"}
	failure := func(message string) func(map[string]any) {
		return func(status map[string]any) {
			status["availableReplicas"] = 0.0
			status["conditions"] = []any{map[string]any{
				"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message,
			}}
		}
	}
	available := func(n float64) func(map[string]any) {
		return func(status map[string]any) { status["availableReplicas"] = n }
	}
	starting := func(w *world) { w.run(available(0)) }
	cases := map[string]struct {
		reason string
		spec   string
		do     func(*world)
		health xpv2.ConditionReason
		words  []string
		phase  v1alpha1.Phase
		ready  bool
		ttl    time.Duration
	}{
		"Serving": {
			"all pods serve", "{image: x, replicas: 3}", nil,
			v1alpha1.ReasonServing, nil, v1alpha1.PhaseReady, true, 30 * time.Minute,
		},
		"Starting": {
			"no pod serves yet, and nothing is wrong", "{image: x, replicas: 3}", starting,
			v1alpha1.ReasonStarting,
			[]string{"starting"},
			v1alpha1.PhaseProgressing, false, 5 * time.Minute,
		},
		"Unnoticed": {
			"the numbers speak of another revision", "{image: x}", func(w *world) {
				w.change(names.Deployment(names.SlotA), func(d composetest.Object) { d["metadata"].(map[string]any)["generation"] = 7.0 })
			},
			v1alpha1.ReasonStarting,
			[]string{"earlier pods serve"},
			v1alpha1.PhaseProgressing, true, 5 * time.Minute,
		},
		"Edited": {
			"an edit changes nothing for callers until it can serve them", "{image: x}", func(w *world) { w.told(w.plan()); w.edit("{image: z}") },
			v1alpha1.ReasonServing, nil, v1alpha1.PhaseProgressing, true, 20 * time.Second,
		},
		"Updating": {
			"during an update the pods before it serve, and the Algorithm stays ready", "{image: x, replicas: 3}",
			func(w *world) {
				w.run(func(s map[string]any) { s["replicas"], s["updatedReplicas"], s["availableReplicas"] = 4.0, 1.0, 3.0 })
			},
			v1alpha1.ReasonStarting,
			[]string{"earlier pods serve"},
			v1alpha1.PhaseProgressing, true, 5 * time.Minute,
		},
		"UpdateHindered": {
			"an update that cannot go on is told, and the Algorithm stays ready", "{image: x, replicas: 3}",
			func(w *world) {
				w.run(func(s map[string]any) { s["replicas"], s["updatedReplicas"], s["availableReplicas"] = 4.0, 1.0, 3.0 })
				w.find(pull)
			},
			v1alpha1.ReasonImagePullFailed,
			[]string{pull.Message},
			v1alpha1.PhaseDegraded, true, 5 * time.Minute,
		},
		"Grown": {
			"more are asked for than serve", "{image: x, replicas: 3}", func(w *world) { w.edit("{image: x, replicas: 4}") },
			v1alpha1.ReasonStarting, nil, v1alpha1.PhaseProgressing, false, 5 * time.Minute,
		},
		"Shrunk": {
			"more serve than are asked for", "{image: x, replicas: 3}", func(w *world) { w.edit("{image: x, replicas: 2}") },
			v1alpha1.ReasonServing, nil, v1alpha1.PhaseReady, true, 30 * time.Minute,
		},
		"ScalingUp": {
			"what the autoscaler adds beyond the minimum is not waited for", "{image: x, scaling: {minReplicas: 2, maxReplicas: 9}}",
			func(w *world) { w.scale(5); w.run(available(2)) },
			v1alpha1.ReasonServing, nil, v1alpha1.PhaseReady, true, 30 * time.Minute,
		},
		"ScalingUpHindered": {
			"unless something blocks it", "{image: x, scaling: {minReplicas: 2, maxReplicas: 9}}",
			func(w *world) { w.scale(5); w.run(available(2)); w.find(pull) },
			v1alpha1.ReasonImagePullFailed, nil, v1alpha1.PhaseDegraded, true, 30 * time.Minute,
		},
		"BadEditWhileScalingUp": {
			"a bad edit does not make more pods needed than before", "{image: x, scaling: {minReplicas: 2, maxReplicas: 9}}",
			func(w *world) { w.scale(5); w.run(available(2)); w.edit("{}") },
			v1alpha1.ReasonServing, nil, v1alpha1.PhaseReady, true, 5 * time.Minute,
		},
		"Finding": {
			"the Analysis knows why", "{image: x}", func(w *world) { starting(w); w.find(pull) },
			v1alpha1.ReasonImagePullFailed,
			[]string{pull.Message},
			v1alpha1.PhaseDegraded, false, 5 * time.Minute,
		},
		"FindingWithoutSlot": {
			"a finding may be about every slot", "{image: x}",
			func(w *world) { starting(w); w.find(observev1alpha1.Finding{Reason: "RunsAsRoot", Message: "m"}) },
			v1alpha1.ReasonRunsAsRoot, nil, v1alpha1.PhaseDegraded, false, 5 * time.Minute,
		},
		"FindingOfAnotherSlot": {
			"pods of another slot are another matter", "{image: x}",
			func(w *world) { starting(w); w.find(observev1alpha1.Finding{Reason: "RunsAsRoot", Slot: "b"}) },
			v1alpha1.ReasonStarting, nil, v1alpha1.PhaseProgressing, false, 5 * time.Minute,
		},
		"StaleFinding": {
			"what was found does not matter while every pod serves", "{image: x}", func(w *world) { w.find(pull) },
			v1alpha1.ReasonServing, nil, v1alpha1.PhaseReady, true, 30 * time.Minute,
		},
		"Quota": {
			"the quota has no room; the name of the pod, another at each try, is left out", "{image: x}",
			func(w *world) {
				w.run(failure(`pods "reco-a-7d9f8-x2b4c" is forbidden: exceeded quota: memory, requested: limits.memory=8Gi`))
			},
			v1alpha1.ReasonQuotaExceeded,
			[]string{"every pod is forbidden: exceeded quota: memory", "raise the quota", "spec.resources"},
			v1alpha1.PhaseDegraded, false, 5 * time.Minute,
		},
		"PodsRefused": {
			"a policy refuses pods, which counts more than what is found", "{image: x}",
			func(w *world) { w.run(failure(`admission webhook "w" denied the request`)); w.find(pull) },
			v1alpha1.ReasonPodsRefused,
			[]string{"denied the request"},
			v1alpha1.PhaseDegraded, false, 5 * time.Minute,
		},
		"Stalled": {
			"nothing is known and nothing happens", "{image: x}", func(w *world) {
				w.run(func(s map[string]any) {
					s["availableReplicas"] = 0.0
					s["conditions"] = []any{map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}
				})
			},
			v1alpha1.ReasonStarting,
			[]string{"kubectl logs -n shop -l capstan.dev/algorithm=reco"},
			v1alpha1.PhaseProgressing, false, 5 * time.Minute,
		},
		"Stopped": {
			"zero replicas are what was asked for", "{image: x, replicas: 0}", nil,
			v1alpha1.ReasonStopped,
			[]string{"spec.replicas"},
			v1alpha1.PhaseStopped, true, 30 * time.Minute,
		},
		"NoAnalysis": {
			"without the provider an Algorithm serves and is ready", "{image: x}",
			func(w *world) {
				withKind(w, compose.Unavailable)
				delete(w.request.Observed, names.Analysis)
			},
			v1alpha1.ReasonServing, nil, v1alpha1.PhaseReady, true, 30 * time.Minute,
		},
		"AnalysisMissing": {
			"an Analysis that does not appear is asked for, and not waited for", "{image: x}",
			func(w *world) { delete(w.request.Observed, names.Analysis) },
			v1alpha1.ReasonServing, nil, v1alpha1.PhaseReady, true, 20 * time.Second,
		},
		"ServiceMissing": {
			"without its Service nobody reaches it", "{image: x}",
			func(w *world) { delete(w.request.Observed, names.Service) },
			v1alpha1.ReasonServing, nil, v1alpha1.PhaseReady, false, 20 * time.Second,
		},
		"DeploymentMissing": {
			"nothing runs", "{image: x}",
			func(w *world) { delete(w.request.Observed, names.Deployment(names.SlotA)) },
			v1alpha1.ReasonStarting,
			[]string{"Composed"},
			v1alpha1.PhasePending, false, 20 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.spec)
			if tc.do != nil {
				tc.do(w)
			}
			p := w.plan()
			c := condition(p, v1alpha1.TypePodsHealthy)
			if c.Reason != tc.health {
				t.Errorf("%s\nhealthy: got %s (%s), want %s", tc.reason, c.Reason, c.Message, tc.health)
			}
			if good := c.Reason == v1alpha1.ReasonServing || c.Reason == v1alpha1.ReasonStopped; good != (c.Status == "True") {
				t.Errorf("%s\nhealthy is %s for %s", tc.reason, c.Status, c.Reason)
			}
			for _, word := range tc.words {
				if !strings.Contains(c.Message, word) {
					t.Errorf("%s\nmessage %q lacks %q", tc.reason, c.Message, word)
				}
			}
			if got := statusOf(p).Phase; got != tc.phase {
				t.Errorf("%s\nphase: got %s, want %s", tc.reason, got, tc.phase)
			}
			if p.Ready != tc.ready {
				t.Errorf("%s\nready: got %t, want %t", tc.reason, p.Ready, tc.ready)
			}
			if p.TTL != tc.ttl {
				t.Errorf("%s\nTTL: got %s, want %s", tc.reason, p.TTL, tc.ttl)
			}
			if len(p.Conditions) < 4 {
				t.Errorf("got %d conditions, want at least those that are always told", len(p.Conditions))
			}
		})
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t, "{image: x, replicas: 3}")
	if st := statusOf(w.plan()); st.Endpoint != "" || st.Selector != "capstan.dev/algorithm=reco,capstan.dev/slot=a" {
		t.Errorf("before the Service exists: endpoint %q, selector %q", st.Endpoint, st.Selector)
	}
	w = serving(t, "{image: x, replicas: 3}")
	w.run(func(s map[string]any) { s["replicas"], s["readyReplicas"] = 4.0, 2.0 })
	st := statusOf(w.plan())
	if st.Endpoint != "http://reco.shop.svc" || st.Replicas != 4 || st.ReadyReplicas != 2 {
		t.Errorf("endpoint %q, replicas %d, readyReplicas %d", st.Endpoint, st.Replicas, st.ReadyReplicas)
	}
	w.edit("{image: z, replicas: 3}")
	w.update()
	if st := statusOf(w.plan()); st.Selector != "capstan.dev/algorithm=reco,capstan.dev/slot=b" || st.Replicas != 3 {
		t.Errorf("the selector should match the pods that are counted, got %q and %d", st.Selector, st.Replicas)
	}
}

func TestSettingsBroken(t *testing.T) {
	w := serving(t, "{image: x}")
	before := w.plan()
	w.request.SettingsErr = errors.New(`EnvironmentConfig "capstan": algorithm.cpu: cannot use "lots"`)
	p := w.plan()
	c := condition(p, v1alpha1.TypeAccepted)
	if c.Reason != v1alpha1.ReasonInvalidSettings || !strings.Contains(c.Message, "algorithm.cpu") || !strings.Contains(c.Message, "lots") {
		t.Errorf("Accepted: got %s %q", c.Reason, c.Message)
	}
	if len(p.Objects) != len(before.Objects) || !p.Ready {
		t.Errorf("ready %t with %d objects, want %d", p.Ready, len(p.Objects), len(before.Objects))
	}
	w = newWorld(t, "{image: x}")
	w.request.Settings.Algorithm.Memory = nil
	if c := condition(w.plan(), v1alpha1.TypeAccepted); c.Reason != v1alpha1.ReasonInvalidSettings || !strings.Contains(c.Message, "algorithm.memory") {
		t.Errorf("settings without memory: got %s %q", c.Reason, c.Message)
	}
}
