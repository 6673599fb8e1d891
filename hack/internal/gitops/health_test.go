// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// asFlux is what Flux makes of what Argo CD says. What waits for a person has reached what it can reach: Flux must not wait
// for it, because the approval comes by the next commit.
var asFlux = map[string]string{"Healthy": "Current", "Suspended": "Current", "Progressing": "InProgress", "Degraded": "Failed"}

// check an object with the scripts of both tools.
func check(t *testing.T, reason string, o map[string]any, want, message string) {
	t.Helper()
	kind := text(o, "kind")
	got := argo(t, scripts(t)["capstan.dev_"+kind], false, o)
	if got.Status != want || !strings.Contains(got.Message, message) {
		t.Errorf("%s\nArgo CD: want %s with %q, got %s with %q", reason, want, message, got.Status, got.Message)
	}
	if got.Status != "Healthy" && got.Message == "" {
		t.Errorf("Argo CD does not tell why it is %s", got.Status)
	}
	if got := flux(t, kustomization(t, kind), o); got != asFlux[want] {
		t.Errorf("%s\nFlux: want %s, got %s", reason, asFlux[want], got)
	}
}

// scripts of Argo CD by group and kind.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	const prefix = "resource.customizations.health."
	all := map[string]string{}
	for key, script := range data(t) {
		if kind, ok := strings.CutPrefix(key, prefix); ok {
			all[kind] = script
		}
	}
	return all
}

func data(t *testing.T) map[string]string {
	t.Helper()
	var cm struct{ Data map[string]string }
	if err := yaml.Unmarshal(read(t, "install/argocd/argocd-cm.yaml"), &cm); err != nil {
		t.Fatal(err)
	}
	return cm.Data
}

// kustomization is what Flux has about a kind.
func kustomization(t *testing.T, kind string) expressions {
	t.Helper()
	for _, file := range []string{"install/flux/services.yaml", "install/flux/capstan.yaml"} {
		var k struct {
			Spec struct{ HealthCheckExprs []expressions }
		}
		if err := yaml.Unmarshal(read(t, file), &k); err != nil {
			t.Fatal(err)
		}
		for _, e := range k.Spec.HealthCheckExprs {
			if e.Kind == kind {
				return e
			}
		}
	}
	t.Fatalf("Flux has no expressions for %s", kind)
	return expressions{}
}

// TestHealthOfExamples checks the composite resource of every example as Crossplane's own engine renders it.
func TestHealthOfExamples(t *testing.T) {
	want := map[string]string{
		"algorithm/approval":           "Suspended",
		"algorithm/canary-rolled-back": "Degraded",
		"algorithm/drift":              "Degraded",
		"algorithm/not-allowed":        "Degraded",
		"database/archive-fails":       "Suspended",
		"database/bad-parameter":       "Degraded",
		"experiment/ended":             "Healthy",
		"pipeline/failed":              "Degraded",
		"training/canary":              "Healthy",
		"preview/expired":              "Suspended",
		"preview/not-allowed":          "Degraded",
		"training/failed":              "Degraded",
		"training/lineage":             "Healthy",
		"training/not-allowed":         "Degraded",
		"training/suspended":           "Suspended",
		"algorithm/image-pull-failed":  "Degraded",
		"database/hibernated":          "Suspended",
		"database/maintenance":         "Suspended",
		"database/major-upgrade":       "Suspended",
		"database/mysql-unsupported":   "Degraded",
		"database/no-cert-manager":     "Degraded",
		"database/rotation":            "Healthy",
		"database/settings-missing":    "Degraded",
		"database/version-unavailable": "Degraded",
	}
	seen := 0
	for _, kind := range []string{"algorithm", "database", "experiment", "pipeline", "preview", "training"} {
		files, err := filepath.Glob(filepath.Join(root, "examples", kind, "*", "want.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("cannot find examples: %v", err)
		}
		for _, file := range files {
			example := kind + "/" + filepath.Base(filepath.Dir(file))
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range documents(t, content) {
				if text(o, "apiVersion") != "capstan.dev/v1alpha1" {
					continue
				}
				seen++
				t.Run(example, func(t *testing.T) {
					expected, listed := want[example]
					if !listed {
						// Most show what is composed at first.
						expected = "Progressing"
					}
					check(t, "as rendered", o, expected, "")
				})
			}
		}
	}
	if seen < len(want) {
		t.Errorf("looked at %d examples", seen)
	}
}

// status of a kind with conditions in the form "Type=Status/Reason: message".
func status(kind, fields string, conditions ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: capstan.dev/v1alpha1\nkind: %s\nmetadata: {name: a, namespace: demo, generation: 3}\nstatus:\n", kind)
	for line := range strings.SplitSeq(fields, "; ") {
		if line != "" {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	b.WriteString("  conditions:\n")
	for _, c := range conditions {
		is, message, _ := strings.Cut(c, ": ")
		name, value, _ := strings.Cut(is, "=")
		value, reason, _ := strings.Cut(value, "/")
		fmt.Fprintf(&b, "    - {type: %s, status: %q, reason: %s, message: %q, observedGeneration: 3}\n", name, value, reason, message)
	}
	return b.String()
}

const (
	synced   = "Synced=True/ReconcileSuccess"
	accepted = "Accepted=True/Valid"
	composed = "Composed=True/Composed"
	ready    = "Ready=True/Available"
	creating = "Ready=False/Creating"
)

// A recorded status and what the tools should make of it.
type recorded struct {
	reason, object, want, message string
}

func cases() map[string]recorded {
	algorithm := func(fields string, conditions ...string) string {
		return status("Algorithm", fields, append([]string{synced, accepted, composed}, conditions...)...)
	}
	database := func(fields string, conditions ...string) string {
		return status("Database", fields, append([]string{synced, accepted, composed}, conditions...)...)
	}
	const serving, live = "PodsHealthy=True/Serving", "Updated=True/Live"
	rolling := func(phase string) string { return "phase: Progressing; rollout: {phase: " + phase + "}" }
	const leading, updated = "Available=True/Leading: a member leads", "Updated=True/Updated"
	return map[string]recorded{
		"AlgorithmPending":     {"Nothing runs.", algorithm("phase: Pending", "PodsHealthy=False/Starting: no Deployment", "Updated=False/Preparing", creating), "Progressing", "no Deployment"},
		"AlgorithmProgressing": {"An edit is on its way.", algorithm("phase: Progressing", serving, "Updated=False/Preparing: pods start", ready), "Progressing", "pods start"},
		"AlgorithmScales":      {"An autoscaler adds pods, and the spec is live.", algorithm("phase: Progressing", serving, live, ready), "Healthy", ""},
		"AlgorithmReady":       {"All is well.", algorithm("phase: Ready", serving, live, ready), "Healthy", ""},
		"AlgorithmDegraded":    {"Pods are blocked.", algorithm("phase: Degraded", "PodsHealthy=False/ImagePullFailed: no such image", "Updated=False/ImagePullFailed", creating), "Degraded", "PodsHealthy (ImagePullFailed): no such image"},
		"AlgorithmNewDegraded": {"Pods of the new revision are blocked.", algorithm("phase: Degraded", serving, "Updated=False/CrashLooping: it ends", ready), "Degraded", "Updated (CrashLooping): it ends"},
		"AlgorithmStopped":     {"Zero replicas are asked for.", algorithm("phase: Stopped", "PodsHealthy=True/Stopped: zero replicas", live, ready), "Suspended", "zero replicas"},
		"AlgorithmAsleep":      {"It is idle, which is as it should be.", algorithm("phase: Asleep", "PodsHealthy=True/Asleep: the first request starts a replica", live, ready), "Healthy", ""},
		"AlgorithmRefused":     {"The spec is not carried out.", status("Algorithm", "phase: Ready", synced, "Accepted=False/InvalidSpec: spec.image", ready), "Degraded", "Accepted (InvalidSpec): spec.image"},
		"AlgorithmTooOld":      {"The cluster is not supported.", status("Algorithm", "", synced, "Accepted=False/KubernetesTooOld: upgrade the cluster", creating), "Degraded", "upgrade the cluster"},
		"AlgorithmForbidden":   {"A right is missing.", status("Algorithm", "phase: Pending", synced, accepted, "Composed=False/NotAllowedToCompose: no right", creating), "Degraded", "no right"},
		"AlgorithmFails":       {"Crossplane cannot work.", status("Algorithm", "phase: Ready", "Synced=False/ReconcileError: no function", accepted, ready), "Degraded", "no function"},
		"AlgorithmPaused":      {"A person has paused it.", status("Algorithm", "phase: Ready", "Synced=False/ReconcilePaused: paused", "Accepted=False/InvalidSpec", ready), "Suspended", "paused"},
		"AlgorithmEdited": {
			"The status is of the spec before.", strings.ReplaceAll(algorithm("phase: Ready", serving, live, ready), "observedGeneration: 3", "observedGeneration: 2"),
			"Progressing", "has not read the latest spec",
		},
		"AlgorithmDeleted": {
			"It is on its way out.", strings.Replace(algorithm("phase: Ready", serving, live, ready), "generation: 3}", "generation: 3, deletionTimestamp: \"2026-01-01T00:00:00Z\"}", 1),
			"Progressing", "is being deleted",
		},
		"AlgorithmNew":        {"Crossplane has not seen it.", "{apiVersion: capstan.dev/v1alpha1, kind: Algorithm, metadata: {name: a, generation: 1}}", "Progressing", "waits for Crossplane"},
		"AlgorithmCoolsDown":  {"It is tried again without a person.", algorithm(rolling("RolledBack"), serving, "Updated=False/CoolingDown: is tried again", ready), "Progressing", "is tried again"},
		"AlgorithmExperiment": {"The spec asks for an experiment, and it runs.", algorithm("phase: Progressing; rollout: {phase: Stepping}; experiment: {phase: Running}", serving, "Updated=False/RollingOut", ready), "Healthy", "experiment"},

		"RolloutBootstrapping": {"Nothing has served.", algorithm("phase: Pending; rollout: {phase: Bootstrapping}", "PodsHealthy=False/Starting: pods start", "Updated=False/Preparing", creating), "Progressing", "pods start"},
		"RolloutStable":        {"Callers reach what is asked for.", algorithm("phase: Ready; rollout: {phase: Stable}", serving, live, ready), "Healthy", ""},
		"RolloutPreparing":     {"Its replicas start.", algorithm(rolling("Preparing"), serving, "Updated=False/RollingOut: is tried", ready), "Progressing", "is tried"},
		"RolloutMirroring":     {"It gets copies.", algorithm(rolling("Mirroring"), serving, "Updated=False/RollingOut: is tried", ready), "Progressing", "is tried"},
		"RolloutStepping":      {"It gets a share.", algorithm(rolling("Stepping"), serving, "Updated=False/RollingOut: is tried", ready), "Progressing", "is tried"},
		"RolloutHolding":       {"A person decides.", algorithm(rolling("Holding"), serving, "Updated=False/AwaitingApproval: approve it", ready), "Suspended", "approve it"},
		"RolloutHoldingStuck":  {"Its pods find no room, and it holds for that.", algorithm("phase: Degraded; rollout: {phase: Holding}", serving, "Updated=False/NoCapacity: no room", ready), "Suspended", "no room"},
		"RolloutPromoting":     {"All callers are on their way.", algorithm(rolling("Promoting"), serving, "Updated=False/Preparing: on their way", ready), "Progressing", "on their way"},
		"RolloutBaking":        {"All callers reach it.", algorithm("phase: Ready; rollout: {phase: Baking}", serving, live, ready), "Healthy", ""},
		"RolloutDraining":      {"The one before ends.", algorithm("phase: Ready; rollout: {phase: Draining}", serving, live, ready), "Healthy", ""},
		"RolloutRollingBack":   {"It failed.", algorithm(rolling("RollingBack"), serving, "Updated=False/RolledBack: latency is too high", ready), "Degraded", "latency is too high"},
		"RolloutReverted":      {"The spec asks for the one before again.", algorithm("phase: Ready; rollout: {phase: RollingBack}", serving, live, ready), "Healthy", ""},
		"RolloutRolledBack":    {"It failed, and the spec still asks for it.", algorithm("phase: Ready; rollout: {phase: RolledBack}", serving, "Updated=False/RolledBack: latency is too high", ready), "Degraded", "latency is too high"},

		"ExperimentNew":     {"Crossplane has not seen it.", "{apiVersion: capstan.dev/v1alpha1, kind: Experiment, metadata: {name: a, generation: 1}}", "Progressing", "waits for Crossplane"},
		"ExperimentWaits":   {"A person begins it.", status("Experiment", "phase: Waiting", synced, accepted, "ExperimentDecided=Unknown/NotRequested: set spec.experiment", creating), "Suspended", "set spec.experiment"},
		"ExperimentRuns":    {"Both arms get requests.", status("Experiment", "phase: Running", synced, accepted, "ExperimentDecided=Unknown/Experimenting: both arms", ready), "Healthy", "both arms"},
		"ExperimentEnded":   {"No result is a result.", status("Experiment", "phase: Ended", synced, accepted, "ExperimentDecided=False/DurationOver: too few", ready), "Healthy", "too few"},
		"ExperimentRefused": {"The spec is not carried out.", status("Experiment", "phase: Waiting", synced, "Accepted=False/InvalidSpec: spec.armB", creating), "Degraded", "spec.armB"},

		"PipelineNew":          {"Crossplane has not seen it.", "{apiVersion: capstan.dev/v1alpha1, kind: Pipeline, metadata: {name: a, generation: 1}}", "Progressing", "waits for Crossplane"},
		"PipelinePending":      {"Nothing runs.", status("Pipeline", "phase: Pending", synced, accepted, "Progressing=False/Pending: objects", creating), "Progressing", "objects"},
		"PipelineWaiting":      {"The schedule has the next run.", status("Pipeline", "phase: Waiting", synced, accepted, "Progressing=False/Waiting: no run has begun yet", ready), "Healthy", "no run has begun"},
		"PipelineQueued":       {"A queue decides.", status("Pipeline", "phase: Queued", synced, accepted, "Progressing=False/Queued: waits for a queue", creating), "Progressing", "waits for a queue"},
		"PipelineStarting":     {"Pods start.", status("Pipeline", "phase: Starting", synced, accepted, "Progressing=False/Starting: pods start", creating), "Progressing", "pods start"},
		"PipelineRunning":      {"It may last for hours.", status("Pipeline", "phase: Running", synced, accepted, "Progressing=True/Running: run 1 runs", "Succeeded=Unknown/NotFinished", ready), "Healthy", "run 1 runs"},
		"PipelineRecovering":   {"The program starts again.", status("Pipeline", "phase: Recovering", synced, accepted, "Progressing=False/Recovering: starts again", creating), "Progressing", "starts again"},
		"PipelineUpgrading":    {"The edited stream follows.", status("Pipeline", "phase: Upgrading", synced, accepted, "Progressing=False/Upgrading: the edited spec starts", creating), "Progressing", "edited spec"},
		"PipelineSuspended":    {"A person resumes it.", status("Pipeline", "phase: Suspended", synced, accepted, "Progressing=False/Suspended: remove it", creating), "Suspended", "remove it"},
		"PipelineSucceeded":    {"It is done.", status("Pipeline", "phase: Succeeded", synced, accepted, "Progressing=False/Succeeded: run 1 succeeded", "Succeeded=True/Succeeded", ready), "Healthy", "run 1 succeeded"},
		"PipelineFailed":       {"A person has to look.", status("Pipeline", "phase: Failed", synced, accepted, "Progressing=False/Failed", "Succeeded=False/ProgramFailed: no such table", creating), "Degraded", "no such table"},
		"PipelineRefused":      {"The spec is not carried out.", status("Pipeline", "phase: Running", synced, "Accepted=False/InvalidSpec: spec.retry", ready), "Degraded", "spec.retry"},
		"PreviewNew":           {"Crossplane has not seen it.", "{apiVersion: capstan.dev/v1alpha1, kind: Preview, metadata: {name: a, generation: 1}}", "Progressing", "waits for Crossplane"},
		"PreviewPending":       {"An original is not there.", status("Preview", "phase: Pending", synced, accepted, "BaseAllowed=False/BaseMissing: no such Algorithm", creating), "Degraded", "no such Algorithm"},
		"PreviewStarting":      {"A copy starts.", status("Preview", "phase: Starting", synced, accepted, "PreviewReady=False/CopyNotReady: Database a-db", creating), "Progressing", "Database a-db"},
		"PreviewReady":         {"It serves.", status("Preview", "phase: Ready", synced, accepted, "PreviewReady=True/CopiesReady: every copy is ready", ready), "Healthy", "every copy is ready"},
		"PreviewAsleep":        {"The next request starts it.", status("Preview", "phase: Asleep", synced, accepted, "PreviewReady=True/Asleep: sleeps", ready), "Healthy", "sleeps"},
		"PreviewExpiring":      {"Its time is up.", status("Preview", "phase: Expiring", synced, accepted, "Expired=True/TimeUp: the time was up", creating), "Suspended", "the time was up"},
		"PreviewExpired":       {"It is a record.", status("Preview", "phase: Expired", synced, accepted, "Expired=True/TimeUp: the time was up", creating), "Suspended", "the time was up"},
		"PreviewRefused":       {"A name is taken.", status("Preview", "phase: Pending", synced, accepted, "Composed=False/Refused: Algorithm a exists", creating), "Degraded", "Algorithm a exists"},
		"TrainingNew":          {"Crossplane has not seen it.", "{apiVersion: capstan.dev/v1alpha1, kind: Training, metadata: {name: a, generation: 1}}", "Progressing", "waits for Crossplane"},
		"TrainingPending":      {"Nothing runs.", status("Training", "phase: Pending", synced, accepted, "Progressing=False/Pending: objects", creating), "Progressing", "objects"},
		"TrainingScheduled":    {"It waits for its time, as the spec says.", status("Training", "phase: Scheduled", synced, accepted, "Progressing=False/Scheduled: no run has begun", "Succeeded=Unknown/NotFinished", ready), "Healthy", "no run has begun"},
		"TrainingQueued":       {"A queue decides.", status("Training", "phase: Queued", synced, accepted, "Progressing=False/Queued: waits for a queue", creating), "Progressing", "waits for a queue"},
		"TrainingStarting":     {"Pods start.", status("Training", "phase: Starting", synced, accepted, "Progressing=False/Starting: pods start", creating), "Progressing", "pods start"},
		"TrainingRunning":      {"It lasts for days.", status("Training", "phase: Running", synced, accepted, "Progressing=True/Training: all ranks run", "Succeeded=Unknown/NotFinished", ready), "Healthy", "all ranks run"},
		"TrainingRecovering":   {"Ranks start again.", status("Training", "phase: Recovering", synced, accepted, "Progressing=False/Recovering: all ranks start again", creating), "Progressing", "start again"},
		"TrainingRestarting":   {"Another run follows.", status("Training", "phase: Restarting", synced, accepted, "Progressing=False/Restarting: run 2 follows", creating), "Progressing", "run 2 follows"},
		"TrainingEnding":       {"How it ended follows.", status("Training", "phase: Ending", synced, accepted, "Progressing=False/Ending: the pods end", creating), "Progressing", "the pods end"},
		"TrainingSuspended":    {"A person resumes it.", status("Training", "phase: Suspended", synced, accepted, "Progressing=False/Suspended: remove it", creating), "Suspended", "remove it"},
		"TrainingSucceeded":    {"It is done.", status("Training", "phase: Succeeded", synced, accepted, "Progressing=False/Succeeded: run 1 succeeded", "Succeeded=True/Succeeded", ready), "Healthy", "run 1 succeeded"},
		"TrainingFailed":       {"A person has to look.", status("Training", "phase: Failed", synced, accepted, "Progressing=False/Failed", "Succeeded=False/ProgramFailed: unknown argument", creating), "Degraded", "unknown argument"},
		"TrainingRefused":      {"The spec is not carried out.", status("Training", "phase: Running", synced, "Accepted=False/InvalidSpec: spec.watch", ready), "Degraded", "spec.watch"},
		"TrainingUnregistered": {"The registry refuses it.", status("Training", "phase: Succeeded", synced, accepted, "Progressing=False/Succeeded", "Succeeded=True/Succeeded", "ModelRegistered=False/RegistryFailed: no such model", creating), "Degraded", "no such model"},

		"DatabasePending":      {"Nothing runs.", database("phase: Pending", "Available=False/MakingReady: certificates", "Updated=False/AddingMembers", creating), "Progressing", "certificates"},
		"DatabaseCreating":     {"Members start.", database("phase: Creating", "Available=False/Bootstrapping: members start", "Updated=False/AddingMembers", creating), "Progressing", "members start"},
		"DatabaseRunning":      {"All is well.", database("phase: Running", leading, updated, ready), "Healthy", "a member leads"},
		"DatabaseNotReady":     {"A member leads, and not all is there yet.", database("phase: Running", leading, updated, creating), "Progressing", ""},
		"DatabaseUpdating":     {"Members restart.", database("phase: Updating", leading, "Updated=False/Restarting: one after the other", ready), "Progressing", "one after the other"},
		"DatabaseUpdatingOdd":  {"What goes on by itself may have any reason.", database("phase: Updating", leading, "Updated=False/Unschedulable: no node yet", ready), "Progressing", "no node yet"},
		"DatabaseDegraded":     {"A member is missing.", database("phase: Degraded", leading, updated, "HighlyAvailable=False/MembersMissing: b is missing", ready), "Degraded", "b is missing"},
		"DatabaseDown":         {"Nobody leads.", database("phase: Down", "Available=False/NoLeader: no member leads", updated, creating), "Degraded", "no member leads"},
		"DatabaseHibernated":   {"The spec asks for that.", database("phase: Hibernated", "Available=False/Hibernated: members are stopped", "Updated=True/Hibernated", ready), "Suspended", "members are stopped"},
		"DatabaseRefused":      {"The spec is not carried out.", status("Database", "phase: Running", synced, "Accepted=False/PlanUnavailable: no such plan", ready), "Degraded", "no such plan"},
		"DatabaseApproval":     {"A person decides.", database("phase: Running", leading, "Updated=False/AwaitingApproval: approve it", ready), "Suspended", "approve it"},
		"DatabaseWindow":       {"It waits for a window.", database("phase: Running", leading, "Updated=False/AwaitingWindow: at night", ready), "Suspended", "at night"},
		"DatabaseFrozen":       {"It waits for a date.", database("phase: Running", leading, "Updated=False/Frozen: until January", ready), "Suspended", "until January"},
		"DatabaseMemberFailed": {"A changed member does not start, and the others are not changed.", database("phase: Running", leading, "Updated=False/CrashLooping: member b ends", ready), "Degraded", "member b ends"},
		"DatabaseArchive":      {"It waits for the bucket.", database("phase: Running", leading, "Updated=False/AwaitingArchive: no bucket", ready), "Suspended", "no bucket"},
		"DatabaseArriving":     {"The last member is on its way.", database("phase: Running", leading, "Updated=False/AwaitingStandby: waiting", ready), "Progressing", "waiting"},
		"DatabaseHookFailed":   {"A hook failed.", database("phase: Running", leading, "Updated=False/HookFailed: exit 1", ready), "Degraded", "exit 1"},
		"DatabaseRestores":     {"It is being restored.", database("phase: Running", leading, updated, "Restored=False/RestoreFilling: 40 GiB", ready), "Progressing", "40 GiB"},
		"DatabaseCannot":       {"It cannot be restored.", database("phase: Running", leading, updated, "Restored=False/RestoreImpossible: no backup", ready), "Degraded", "no backup"},
		"DatabaseUpgrades":     {"It is being upgraded.", database("phase: Running", leading, updated, "Upgraded=False/UpgradePreparing: copying", ready), "Progressing", "copying"},
		"DatabaseIncompatible": {"It cannot be upgraded.", database("phase: Running", leading, updated, "Upgraded=False/Incompatible: drop it", ready), "Degraded", "drop it"},
		"DatabaseFull":         {"Its volumes are full.", database("phase: Creating", "Available=False/StorageFull: full", updated, creating), "Degraded", "full"},
		"DatabaseAccess":       {"A login cannot be made.", database("phase: Running", leading, updated, "ConsumersReady=False/AccessFailed: no extension", creating), "Degraded", "no extension"},
		"DatabaseOverwritten":  {"A person has paused it.", status("Database", "phase: Down", "Synced=False/ReconcilePaused: paused", ready), "Suspended", "paused"},
	}
}

// TestHealthInEveryPhase checks what the examples lack, and that no phase is missing.
func TestHealthInEveryPhase(t *testing.T) {
	covered := map[string]bool{}
	for name, tc := range cases() {
		t.Run(name, func(t *testing.T) {
			o := object(t, tc.object)
			check(t, tc.reason, o, tc.want, tc.message)
			covered[map[string]string{"Algorithm": "Phase", "Database": "DatabasePhase", "Pipeline": "PipelinePhase", "Preview": "PreviewPhase", "Training": "TrainingPhase"}[text(o, "kind")]+" "+text(o, "status", "phase")] = true
			covered["RolloutPhase "+text(o, "status", "rollout", "phase")] = true
		})
	}
	declared := phases(t)
	if len(declared) < 20 {
		t.Fatalf("found only %d phases in apis/v1alpha1", len(declared))
	}
	for _, p := range declared {
		if !covered[p] {
			t.Errorf("no case has the %s", p)
		}
	}
}

// phases that the API declares, with their type.
func phases(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "apis/v1alpha1/*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot find the API: %v", err)
	}
	var all []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			of, ok := spec.Type.(*ast.Ident)
			if !ok || of.Name != "Phase" && of.Name != "RolloutPhase" && of.Name != "DatabasePhase" && of.Name != "PipelinePhase" && of.Name != "PreviewPhase" && of.Name != "TrainingPhase" {
				return true
			}
			for _, v := range spec.Values {
				value, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, of.Name+" "+value)
			}
			return true
		})
	}
	return all
}
