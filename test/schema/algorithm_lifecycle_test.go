// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lifecycleAccepted are Algorithms that say how callers go over to a new revision.
func lifecycleAccepted() map[string]map[string]any {
	objects := map[string]map[string]any{}
	for name, text := range map[string]string{
		"LifecycleByDefault":     `lifecycle: {}`,
		"LifecycleOneWeight":     `lifecycle: {canaryWeight: 20}`,
		"LifecycleLeastWeight":   `lifecycle: {canaryWeight: 1}`,
		"LifecycleAllAtOnce":     `lifecycle: {canaryWeight: 100, bake: 1h}`,
		"LifecycleOneStep":       `lifecycle: {steps: [99]}`,
		"LifecycleTenSteps":      `lifecycle: {steps: [1, 2, 5, 10, 20, 30, 50, 75, 90, 99]}`,
		"LifecycleShortTimes":    `lifecycle: {soak: 0s, deadline: 1m, bake: 0s}`,
		"LifecycleLongTimes":     `lifecycle: {soak: 168h, deadline: 168h, bake: 168h}`,
		"LifecycleMixedTimes":    `lifecycle: {soak: 1h30m, deadline: 1.5h}`,
		"LifecycleBorrow":        `{replicas: 2, lifecycle: {capacity: Borrow}}`,
		"LifecycleBorrowNone":    `{replicas: 0, lifecycle: {capacity: Borrow}}`,
		"LifecycleRecreate":      `{replicas: 1, lifecycle: {capacity: Recreate, steps: [5, 50]}}`,
		"LifecycleSurge":         `{scaling: {maxReplicas: 4}, lifecycle: {capacity: Surge, standbyReplicas: 1}}`,
		"LifecycleOneStandby":    `lifecycle: {standbyReplicas: 1}`,
		"LifecycleNoThreshold":   `lifecycle: {successThreshold: 0}`,
		"LifecycleManyNines":     `lifecycle: {successThreshold: 0.99999}`,
		"LifecycleOneSample":     `lifecycle: {minSamples: 1}`,
		"LifecycleMostSamples":   `lifecycle: {minSamples: 1000000}`,
		"LifecycleLatency":       `{lifecycle: {maxLatencyIncreasePercent: 10}, objectives: {latencyPercentile: 99}}`,
		"ObjectivesWhole":        `objectives: {successRatio: 0.9999, latencyMs: 3600000, latencyPercentile: 50}`,
		"ObjectivesOfScaling":    `{objectives: {latencyPercentile: 99}, scaling: {maxReplicas: 10, targetLatencyMs: 50}}`,
		"LifecycleFailures":      `lifecycle: {maxFailureIncreasePercent: 1000}`,
		"LifecycleMetric":        `{lifecycle: {}, metrics: {queries: [{name: revenue, query: sum(revenue), min: 0.98, max: 0.98, appliesTo: Ratio}]}}`,
		"LifecycleMetricSaysSo":  `{lifecycle: {}, metrics: {queries: [{name: p, query: sum(revenue), max: -1, appliesTo: Candidate}]}}`,
		"LifecycleDrift":         `{lifecycle: {rollbackOnDrift: true, drift: {}}, metrics: {queries: [{name: outputs, query: q}]}}`,
		"LifecycleDriftOfServer": `lifecycle: {rollbackOnDrift: true, drift: {max: 0.3}}`,
		"LifecycleDriftAlone":    `lifecycle: {drift: {}}`,
		"LifecycleDriftReported": `lifecycle: {rollbackOnDrift: false, drift: {}}`,
		"LifecycleDataDrift":     `lifecycle: {drift: {reference: 720h, method: KS, max: 0.05}}`,
		"LifecycleNoDrift":       `lifecycle: {rollbackOnDrift: false}`,
		"LifecycleContinue":      `lifecycle: {onNoData: Continue}`,
		"LifecycleApproved":      `{lifecycle: {approval: EveryStep}, rollout: {approve: [1a2b3c4d5e, "1a2b3c4d5e:1", "1a2b3c4d5e:50", "0123456789:100"]}}`,
		"LifecycleByHand":        `{lifecycle: {}, rollout: {pause: true, promote: 1a2b3c4d5e, abort: 2b3c4d5e6f, retry: "0a1b2c3d4e#2"}}`,
		"LifecycleManyRetries":   `{lifecycle: {}, rollout: {retry: "0a1b2c3d4e#9999"}}`,
		"LifecycleFrozen":        `lifecycle: {freeze: [{cron: "0 17 * * 5", for: 62h, timeZone: Europe/Berlin}, {cron: "* * 1 1 *", for: 1m}, {cron: "0 0 1 * *", for: 744h, timeZone: Etc/GMT+1}]}`,
		"LifecycleHookOfSignal":  `lifecycle: {hooks: [{name: flush, at: Signal, url: "http://cache.shop.svc"}, {name: dump, at: Signal, job: {image: a}}]}`,
		"LifecycleMatch":         `{route: {}, lifecycle: {match: [header X-User-Group=beta, cookie early-access=1]}}`,
	} {
		objects[name] = smallest(spec(text))
	}
	return objects
}

// addHooks with mistakes.
func addHooks(add func(name, reason, lifecycle string, want ...string)) {
	const (
		one  = "spec.lifecycle.hooks[0]: Invalid value: set either job, or url, secretName or both of these"
		url  = "must be an http or https URL without a user, for instance http://smoke.shop.svc/reco"
		node = "must not be an address of a node, of a metadata service or of the API server: use the address of the hook"
	)
	hook := func(at, rest string) string { return `hooks: [{name: smoke, at: ` + at + `, ` + rest + `}]` }
	at := func(field, value, says string) string {
		return "spec.lifecycle.hooks[0]." + field + ": Invalid value: \"" + value + "\": " + says
	}
	add("HookOfTwo", "One of them runs.", hook("BeforeTraffic", `url: "http://a", job: {image: a}`), one)
	add("HookOfNothing", "Nothing would run.", hook("BeforeTraffic", `timeout: 1m`), one)
	add("HookJobTold", "Jobs are no notifications.", hook("Transition", `job: {image: a}`),
		"spec.lifecycle.hooks[0].job: Invalid value: at Transition only HTTP requests are sent: set url, or another at")
	add("HookUndoes", "What is decided stays.", hook("AfterRollback", `url: "http://a", onFailure: Hold`),
		"spec.lifecycle.hooks[0].onFailure: Invalid value: needs at BeforeTraffic, DuringStep or BeforePromotion: the failure of a later hook is only reported: remove onFailure")
	add("HookOfSignalUndoes", "No rollout waits for it.", hook("Signal", `url: "http://a", onFailure: Hold`),
		"spec.lifecycle.hooks[0].onFailure: Invalid value: needs at BeforeTraffic, DuringStep or BeforePromotion: the failure of a later hook is only reported: remove onFailure")
	add("HookOfUser", "Everybody who reads the spec would know it.", hook("DuringStep", `url: "http://a:b@c"`), at("url", "http://a:b@c", url))
	for name, target := range map[string]string{
		"Loopback": "http://127.0.0.1:8080/", "Localhost": "https://localhost", "Metadata": "http://169.254.169.254/latest", "LinkLocal": "http://[fe80::1]/",
		"APIServer": "https://kubernetes.default.svc/api", "None": "http://0.0.0.0",
	} {
		add("HookAt"+name, "The provider would refuse it.", hook("BeforePromotion", `url: "`+target+`"`), at("url", target, node))
	}
	add("HookSecret", "A Secret has no such name.", hook("BeforeTraffic", `secretName: A`), at("secretName", "A", "must be the name of a Secret"))
	add("HookTimeout", "The bound is named.", hook("BeforeTraffic", `url: "http://a", timeout: 25h`), at("timeout", "25h", "must be from 1s to 24h, for instance 5m"))
	add("HookImage", "It is no image.", hook("BeforeTraffic", `job: {image: "a b"}`),
		at("job.image", "a b", "must be an image reference: letters, digits and any of . _ - / : @ +"))
	add("HookName", "It is part of names.", `hooks: [{name: A, at: DuringStep, url: "http://a"}]`,
		at("name", "A", "must be lower case letters, digits and '-', with a letter or digit at both ends"))
}

// lifecycleRefused are Algorithms with mistakes in it.
func lifecycleRefused() map[string]refused {
	const (
		week      = "must be a time of at most 168h, for instance "
		rising    = "must rise, for instance 5, 20, 50"
		revision  = "must be a revision of status.rollout, for instance 1a2b3c4d5e"
		approval  = "must be a revision of status.rollout, or one with a weight, for instance 1a2b3c4d5e:50"
		retry     = "must be a revision of status.rollout.failed and the number of the attempt, for instance 1a2b3c4d5e#2"
		deadline  = "must be a time from 1m to 168h, for instance 1h"
		frozen    = "must be a time from 1m to 744h, for instance 62h"
		past      = "must be a time from 1m to 720h, for instance 24h"
		distance  = "must be above 0 and at most 10"
		checkName = "must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
		builtIn   = "must not be the name of a built-in check (success, success-against-baseline, latency-against-baseline, drift, data-drift, request-rate, time-to-first-token, time-per-output-token, tokens-per-second, requests-waiting, cache-use): choose another"
		alias     = "must be letters, digits, '_' and '-', and not be latest or v with digits, which the registry reserves"
	)
	bound := func(field, is, says, at string) string {
		return "spec.lifecycle." + field + ": Invalid value: " + is + ": spec.lifecycle." + field + " in body should be " + says + " than or equal to " + at
	}
	cases := map[string]refused{}
	// add a case. A mistake is always told with the field that it is in.
	add := func(name, reason, lifecycle string, want ...string) {
		cases["Lifecycle"+name] = refused{reason: reason, object: smallest(spec(`lifecycle: {` + lifecycle + `}`)), want: want}
	}

	// ask is a case of what a person asks of a rollout.
	ask := func(name, reason, rollout string, want ...string) {
		cases["Rollout"+name] = refused{reason: reason, object: smallest(spec(`{lifecycle: {}, rollout: {` + rollout + `}}`)), want: want}
	}

	add("WeightAndSteps", "Which of them holds?", `canaryWeight: 20, steps: [5, 50]`,
		"spec.lifecycle.steps: Invalid value: steps replace canaryWeight: set only one of them")
	add("NoWeight", "Nobody would try it.", `canaryWeight: 0`, bound("canaryWeight", "0", "greater", "1"))
	add("OverWeight", "There is no more than all.", `canaryWeight: 101`, bound("canaryWeight", "101", "less", "100"))
	add("NoSteps", "Leave it out instead.", `steps: []`, "spec.lifecycle.steps: Invalid value: 0: spec.lifecycle.steps in body should have at least 1 items")
	add("ManySteps", "A step that is hardly greater tells hardly more.", `steps: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]`,
		"spec.lifecycle.steps: Too many: 11: must have at most 10 items")
	add("StepOfNothing", "Nobody would try it.", `steps: [0, 20]`, bound("steps[0]", "0", "greater", "1"))
	add("StepOfAll", "All callers go over after the last step anyway.", `steps: [20, 100]`, bound("steps[1]", "100", "less", "99"))
	add("StepsFall", "Evidence of a greater share says all about a smaller one.", `steps: [5, 50, 20]`,
		"spec.lifecycle.steps: Invalid value: "+rising)
	add("StepTwice", "The second one would change nothing.", `steps: [5, 5]`, "spec.lifecycle.steps: Invalid value: "+rising)

	add("SoakWithoutUnit", "Minutes or seconds?", `soak: "5"`, `spec.lifecycle.soak: Invalid value: "5": `+week+"2m")
	add("SoakTooLong", "The bound is named.", `soak: 169h`, `spec.lifecycle.soak: Invalid value: "169h": `+week+"2m")
	add("SoakInThePast", "Time only goes on.", `soak: -5m`, `spec.lifecycle.soak: Invalid value: "-5m": `+week+"2m")
	add("DeadlineTooShort", "No evidence could be there.", `deadline: 59s`, `spec.lifecycle.deadline: Invalid value: "59s": `+deadline)
	add("DeadlineTooLong", "The bound is named.", `deadline: 168h1s`, `spec.lifecycle.deadline: Invalid value: "168h1s": `+deadline)
	add("BakeInDays", "Go, whose times these are, has no days.", `bake: 1d`, `spec.lifecycle.bake: Invalid value: "1d": `+week+"30m")

	add("OtherCapacity", "The choices are named.", `capacity: Steal`,
		`spec.lifecycle.capacity: Unsupported value: "Steal": supported values: "Surge", "Borrow", "Recreate"`)
	add("BorrowUnnumbered", "Of how many?", `capacity: Borrow`,
		"spec.lifecycle.capacity: Invalid value: Borrow and Recreate need the number of replicas that both revisions share: set replicas, or set capacity to Surge")
	for name, c := range map[string]struct{ reason, spec, want string }{
		"BorrowSingle": {
			"A single replica cannot be exchanged and serve.", `{replicas: 1, lifecycle: {capacity: Borrow}}`,
			"spec.lifecycle.capacity: Invalid value: Borrow needs at least 2 replicas, because one serves while the other is exchanged: raise replicas, or set capacity to Recreate where clients can be refused for a while, or to Surge",
		},
		"RecreateScaled": {
			"An autoscaler would start what has to stop.", `{replicas: 2, scaling: {maxReplicas: 4}, lifecycle: {capacity: Recreate}}`,
			"spec.lifecycle.capacity: Invalid value: Borrow and Recreate need a fixed number of replicas, which an autoscaler would change: remove scaling and set replicas, or set capacity to Surge",
		},
		"BorrowStandby": {
			"Nothing stands by.", `{replicas: 2, lifecycle: {capacity: Borrow, standbyReplicas: 1}}`,
			"spec.lifecycle.standbyReplicas: Invalid value: needs capacity: Surge, because with Borrow and Recreate the previous revision keeps no replicas: remove standbyReplicas, or set capacity to Surge",
		},
		"BorrowMirror": {
			"Copies of requests need replicas of their own.", `{replicas: 2, route: {}, lifecycle: {capacity: Borrow, mirrorPercent: 100}}`,
			"spec.lifecycle.mirrorPercent: Invalid value: needs capacity: Surge, because copies of requests need replicas beside those that serve: remove mirrorPercent, or set capacity to Surge",
		},
	} {
		cases["Lifecycle"+name] = refused{reason: c.reason, object: smallest(spec(c.spec)), want: []string{c.want}}
	}
	addHooks(add)
	add("NoStandby", "Nobody could take callers back.", `standbyReplicas: 0`, bound("standbyReplicas", "0", "greater", "1"))
	add("ManyStandby", "The bound is named.", `standbyReplicas: 1001`, bound("standbyReplicas", "1001", "less", "1000"))
	add("ThresholdOfAll", "No number of requests tells that nothing ever fails.", `successThreshold: 1`,
		"spec.lifecycle.successThreshold: Invalid value: 1: spec.lifecycle.successThreshold in body should be less than 1")
	add("ThresholdBelowNone", "The bound is named.", `successThreshold: -0.1`, bound("successThreshold", "-0.1", "greater", "0"))
	add("NoSamples", "No evidence is none.", `minSamples: 0`, bound("minSamples", "0", "greater", "1"))
	add("ManySamples", "The bound is named.", `minSamples: 1000001`, bound("minSamples", "1000001", "less", "1000000"))

	add("NoFailures", "Chance alone would exceed it.", `maxFailureIncreasePercent: 0`, bound("maxFailureIncreasePercent", "0", "greater", "1"))
	add("AnyFailures", "The bound is named.", `maxFailureIncreasePercent: 1001`, bound("maxFailureIncreasePercent", "1001", "less", "1000"))
	add("NoLatencyIncrease", "Chance alone would exceed it.", `maxLatencyIncreasePercent: 0`, bound("maxLatencyIncreasePercent", "0", "greater", "1"))
	add("AnyLatencyIncrease", "The bound is named.", `maxLatencyIncreasePercent: 1001`, bound("maxLatencyIncreasePercent", "1001", "less", "1000"))
	for name, c := range map[string]struct{ reason, spec, want string }{
		"Empty": {
			"Nothing would come of it.", `objectives: {latencyPercentile: 99}`,
			"spec.objectives: Invalid value: has no effect without successRatio, latencyMs, timeToFirstTokenMs and timePerOutputTokenMs: set at least one of them",
		},
		"OfAll": {
			"No number of requests tells that nothing ever fails.", `objectives: {successRatio: 1}`,
			"spec.objectives.successRatio: Invalid value: 1: must be above 0 and below 1, for instance 0.99: with 1 no request can fail",
		},
		"InPercent": {
			"The form is named.", `objectives: {successRatio: 99}`,
			"spec.objectives.successRatio: Invalid value: 99: must be above 0 and below 1, for instance 0.99: with 1 no request can fail",
		},
		"AtOnce": {
			"Every answer takes time.", `objectives: {latencyMs: 0}`,
			"spec.objectives.latencyMs: Invalid value: 0: spec.objectives.latencyMs in body should be greater than or equal to 1",
		},
		"TooSlow": {
			"An hour is no answer.", `objectives: {latencyMs: 3600001}`,
			"spec.objectives.latencyMs: Invalid value: 3600001: spec.objectives.latencyMs in body should be less than or equal to 3600000",
		},
		"OtherPercentile": {
			"The choices are named.", `objectives: {latencyMs: 50, latencyPercentile: 98}`,
			`spec.objectives.latencyPercentile: Unsupported value: 98: supported values: "50", "90", "95", "99"`,
		},
		"OldName": {
			"Who edits an old manifest is told.", `lifecycle: {latency: {maxMs: 50}}`, `unknown field "spec.lifecycle.latency"`,
		},
		"RolloutAlone": {
			"There is none to pause.", `rollout: {pause: true}`,
			"spec.rollout: Invalid value: needs lifecycle, because without it there is no rollout to pause, approve, promote, abort or retry: set lifecycle, or remove rollout",
		},
	} {
		cases["Objectives"+name] = refused{reason: c.reason, object: smallest(spec(c.spec)), want: []string{c.want}}
	}

	metric := `name: revenue, query: sum(revenue)`
	check := func(name, reason, checks string, want ...string) {
		cases["Lifecycle"+name] = refused{reason: reason, object: smallest(spec(`{lifecycle: {}, metrics: {queries: [` + checks + `]}}`)), want: want}
	}
	check("ManyMetrics", "Each is a query each time.", ``+ownMetrics(23)+``,
		"spec.metrics.queries: Too many: 23: must have at most 22 items")
	check("MetricWithoutBounds", "Nothing would be asked.", `{`+metric+`}`,
		"spec.metrics.queries[0]: Invalid value: min, max: set at least one, otherwise nothing is checked")
	check("MetricMinAboveMax", "Nothing could pass.", `{`+metric+`, min: 2, max: 1}`,
		"spec.metrics.queries[0].min: Invalid value: min must not be above max: lower min or raise max")
	check("MetricInUpperCase", "The form is named.", `{name: Revenue, query: q, min: 1}`,
		`spec.metrics.queries[0].name: Invalid value: "Revenue": `+checkName)
	check("MetricOfOurs", "Two checks would have the name.", `{name: latency-against-baseline, query: q, min: 1}`,
		`spec.metrics.queries[0].name: Invalid value: "latency-against-baseline": `+builtIn)
	check("MetricLongName", "The bound is named.", `{name: `+strings.Repeat("a", 64)+`, query: q, min: 1}`,
		"spec.metrics.queries[0].name: Too long: may not be more than 63 bytes")
	check("MetricTwice", "Which one holds?", `{`+metric+`, min: 1}, {`+metric+`, max: 2}`, `spec.metrics.queries[1]: Duplicate value: {"name":"revenue"}`)
	check("MetricWithoutQuery", "What is asked?", `{name: revenue, min: 1}`, "spec.metrics.queries[0].query: Required value")
	check("MetricEmptyQuery", "What is asked?", `{name: revenue, query: "", min: 1}`,
		`spec.metrics.queries[0].query: Invalid value: "": spec.metrics.queries[0].query in body should be at least 1 chars long`)
	check("MetricLongQuery", "The bound is named.", `{name: revenue, query: `+strings.Repeat("q", 2049)+`, min: 1}`,
		"spec.metrics.queries[0].query: Too long: may not be more than 2048 bytes")
	check("MetricOfOther", "The choices are named.", `{`+metric+`, min: 1, appliesTo: Next}`,
		`spec.metrics.queries[0].appliesTo: Unsupported value: "Next": supported values: "Live", "Candidate", "Both", "Ratio"`)

	add("DriftMethod", "The choices are named.", `rollbackOnDrift: true, drift: {method: JS}`,
		`spec.lifecycle.drift.method: Unsupported value: "JS": supported values: "PSI", "KS"`)
	add("DriftOfNone", "Chance alone would exceed it.", `rollbackOnDrift: true, drift: {max: 0}`,
		"spec.lifecycle.drift.max: Invalid value: 0: "+distance)
	add("DriftOfAny", "Nothing would exceed it.", `rollbackOnDrift: true, drift: {max: 10.5}`,
		"spec.lifecycle.drift.max: Invalid value: 10.5: "+distance)
	add("DriftFromNow", "It would be compared with itself.", `drift: {reference: 30s}`, `spec.lifecycle.drift.reference: Invalid value: "30s": `+past)
	add("DriftFromLongAgo", "Few keep metrics for as long.", `drift: {reference: 721h}`, `spec.lifecycle.drift.reference: Invalid value: "721h": `+past)

	add("OnNoDataPromote", "The choices are named.", `onNoData: Promote`,
		`spec.lifecycle.onNoData: Unsupported value: "Promote": supported values: "Hold", "Rollback", "Continue"`)
	add("ApprovalAlways", "The choices are named.", `approval: Always`,
		`spec.lifecycle.approval: Unsupported value: "Always": supported values: "None", "BeforePromotion", "EveryStep"`)
	ask("ApproveAnything", "It would approve what nobody knows yet.", `approve: ["*"]`, `spec.rollout.approve[0]: Invalid value: "*": `+approval)
	ask("ApproveNothing", "A share of no callers needs nobody to agree.", `approve: ["1a2b3c4d5e:0"]`, `spec.rollout.approve[0]: Invalid value: "1a2b3c4d5e:0": `+approval)
	ask("ApproveTwice", "Once is enough.", `approve: [1a2b3c4d5e, 1a2b3c4d5e]`, `spec.rollout.approve[1]: Duplicate value: "1a2b3c4d5e"`)
	ask("ApproveLong", "The bound is named.", `approve: [`+strings.Repeat("a", 33)+`]`, "spec.rollout.approve[0]: Too long: may not be more than 32 bytes")
	ask("ApproveMany", "Those that are left behind mean nothing.", `approve: [`+approvals(33)+`]`,
		"spec.rollout.approve: Too many: 33: must have at most 32 items")
	ask("PromoteImage", "A tag may mean another revision tomorrow.", `promote: "2.1.5"`, `spec.rollout.promote: Invalid value: "2.1.5": `+revision)
	ask("PromoteLong", "The bound is named.", `promote: 1a2b3c4d5e6`, "spec.rollout.promote: Too long: may not be more than 10 bytes")
	ask("AbortTrue", "Which revision?", `abort: "true"`, `spec.rollout.abort: Invalid value: "true": `+revision)
	ask("AbortLong", "The bound is named.", `abort: 1a2b3c4d5e6`, "spec.rollout.abort: Too long: may not be more than 10 bytes")
	ask("RetryFirst", "The first attempt is the one that failed.", `retry: "1a2b3c4d5e#1"`, `spec.rollout.retry: Invalid value: "1a2b3c4d5e#1": `+retry)
	ask("RetryWithoutNumber", "It would be tried again and again.", `retry: 1a2b3c4d5e`, `spec.rollout.retry: Invalid value: "1a2b3c4d5e": `+retry)
	ask("RetryLong", "The bound is named.", `retry: "1a2b3c4d5e#123456"`, "spec.rollout.retry: Too long: may not be more than 16 bytes")

	add("FreezeWithoutEnd", "How long does it last?", `freeze: [{cron: "0 17 * * 5"}]`, "spec.lifecycle.freeze[0].for: Required value")
	add("FreezeWithoutBegin", "When does it begin?", `freeze: [{for: 1h}]`, "spec.lifecycle.freeze[0].cron: Required value")
	add("FreezeShortCron", "It has five parts.", `freeze: [{cron: "@weekly", for: 1h}]`,
		`spec.lifecycle.freeze[0].cron: Invalid value: "@weekly": spec.lifecycle.freeze[0].cron in body should be at least 9 chars long`)
	add("FreezeLongCron", "The bound is named.", `freeze: [{cron: "`+strings.Repeat("*", 129)+`", for: 1h}]`,
		"spec.lifecycle.freeze[0].cron: Too long: may not be more than 128 bytes")
	add("FreezeTooLong", "The longest month is over.", `freeze: [{cron: "0 0 1 * *", for: 745h}]`, `spec.lifecycle.freeze[0].for: Invalid value: "745h": `+frozen)
	add("FreezeLongText", "The bound is named.", `freeze: [{cron: "0 0 1 * *", for: `+strings.Repeat("0", 48)+`h}]`,
		"spec.lifecycle.freeze[0].for: Too long: may not be more than 48 bytes")
	add("FreezeZone", "The form is named.", `freeze: [{cron: "0 0 1 * *", for: 1h, timeZone: ../Berlin}]`,
		`spec.lifecycle.freeze[0].timeZone: Invalid value: "../Berlin": must be the name of a time zone, for instance Europe/Berlin`)
	add("FreezeLongZone", "The bound is named.", `freeze: [{cron: "0 0 1 * *", for: 1h, timeZone: `+strings.Repeat("A", 65)+`}]`,
		"spec.lifecycle.freeze[0].timeZone: Too long: may not be more than 64 bytes")
	add("FreezeMany", "The bound is named.", `freeze: [`+strings.TrimSuffix(strings.Repeat(`{cron: "0 0 1 * *", for: 1h}, `, 9), ", ")+`]`,
		"spec.lifecycle.freeze: Too many: 9: must have at most 8 items")

	for name, match := range map[string]string{
		"Kind": "beta=1", "Header": "header a b=beta", "Cookie": "cookie a=.*", "Value": "cookie a=b;c", "WithoutValue": "cookie a=", "Pair": "header a",
	} {
		add("Match"+name, "It becomes part of an expression of the Gateway.", `match: ["`+match+`"]`, `spec.lifecycle.match[0]: Invalid value: "`+match+`": `+
			"must be header or cookie, its name, = and its value, for instance header X-User-Group=beta: names are letters, digits, '-' and '_', values also '.' and '~'")
	}
	add("MatchLong", "The bound is named.", `match: ["cookie a=`+strings.Repeat("b", 1280)+`"]`, "spec.lifecycle.match[0]: Too long: may not be more than 1280 bytes")
	add("MatchMany", "The bound is named.", `match: [`+strings.TrimSuffix(strings.Repeat(`cookie a=b, `, 5), ", ")+`]`,
		"spec.lifecycle.match: Too many: 5: must have at most 4 items")
	add("Unknown", "A typing error is told, not ignored.", `canaryWeigth: 20`, `unknown field "spec.lifecycle.canaryWeigth"`)

	return cases
}

// approvals that differ.
func approvals(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("1a2b3c4d%02d", i)
	}
	return `"` + strings.Join(all, `", "`) + `"`
}

// ownMetrics that differ.
func ownMetrics(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("{name: m%d, query: q, min: 1}", i)
	}
	return strings.Join(all, ", ")
}

// TestLifecycleDefaults shows what a lifecycle means that says nothing.
func TestLifecycleDefaults(t *testing.T) {
	a := newAdmission(t, readXRD(t, algorithmXRD))
	cases := map[string]struct {
		reason string
		spec   string
		want   map[string]any
	}{
		"Nothing": {
			reason: "The share of callers has no default here, because steps take its place.",
			spec:   `lifecycle: {}`,
			want: map[string]any{
				"soak": "2m", "deadline": "1h", "bake": "30m", "minSamples": int64(100),
				"onNoData": "Hold", "approval": "None", "capacity": "Surge",
			},
		},
		"Below": {
			reason: "What is set has defaults of its own.",
			spec: `lifecycle: {soak: 0s, deadline: 2h, bake: 0s, successThreshold: 0, minSamples: 1, onNoData: Continue, approval: EveryStep, ` +
				`drift: {reference: 24h}, freeze: [{cron: "0 17 * * 5", for: 62h}]}`,
			want: map[string]any{
				"soak": "0s", "deadline": "2h", "bake": "0s", "successThreshold": int64(0), "minSamples": int64(1),
				"onNoData": "Continue", "approval": "EveryStep", "capacity": "Surge",
				"drift":  map[string]any{"reference": "24h", "method": "PSI", "max": 0.2},
				"freeze": []any{map[string]any{"cron": "0 17 * * 5", "for": "62h", "timeZone": "UTC"}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, errs := a.create(t, smallest(spec(tc.spec)))
			if len(errs) > 0 {
				t.Errorf("\n%s\ncreate(...): want no errors, got:\n%s", tc.reason, strings.Join(errs, "\n"))
			}
			if diff := cmp.Diff(tc.want, got["spec"].(map[string]any)["lifecycle"]); diff != "" {
				t.Errorf("\n%s\ncreate(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
