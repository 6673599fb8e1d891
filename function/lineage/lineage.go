// SPDX-License-Identifier: Apache-2.0

// Package lineage has the provider report the runs of a Pipeline or Training to the server for OpenLineage that the platform names. Nothing of a run
// depends on it.
package lineage

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/observed"
)

// Resource is the name of the Lineage within the composition. It never changes.
const Resource = "lineage"

// most runs that a Lineage has.
const most = 64

// A Job is what a Lineage is made of.
type Job struct {
	Request compose.Request

	// Name of the Pipeline or Training, and the metadata of the Lineage.
	Name     string
	Metadata *applymetav1.ObjectMetaApplyConfiguration

	// Spec of the Pipeline or Training, which wants a Lineage or not.
	Spec      *v1alpha1.JobLineage
	Streaming bool
}

type spec struct {
	ProviderConfigReference *xpv2.ProviderConfigReference     `json:"providerConfigRef,omitempty"`
	ForProvider             observev1alpha1.LineageParameters `json:"forProvider"`
}

// Compose the Lineage of a job with some runs, where the spec wants one and the provider is installed.
func (j Job) Compose(d *compose.Draft, runs []observev1alpha1.LineageRun) {
	gvk := observev1alpha1.LineageGroupVersionKind
	if j.Spec == nil || j.Request.Kinds[gvk] != compose.Available && j.Request.Observed[Resource] == nil {
		return
	}
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b observev1alpha1.LineageRun) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt.Time), cmp.Compare(a.Name, b.Name))
	})
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	d.Offer(Resource, compose.NewManifest(apiVersion, kind, j.Metadata, spec{
		ProviderConfigReference: j.Request.Settings.Pipeline.Lineage,
		ForProvider: observev1alpha1.LineageParameters{
			Job: j.Name, Streaming: j.Streaming, Inputs: datasets(j.Spec.Inputs), Outputs: datasets(j.Spec.Outputs),
			Runs: runs[max(0, len(runs)-most):],
		},
	}))
}

func datasets(of []v1alpha1.JobDataset) []observev1alpha1.LineageDataset {
	all := make([]observev1alpha1.LineageDataset, 0, len(of))
	for _, d := range of {
		all = append(all, observev1alpha1.LineageDataset(d))
	}
	return all
}

// Conditions has one that says whether the server takes the events, or none where the spec wants no Lineage.
func (j Job) Conditions() []xpv2.Condition {
	if j.Spec == nil {
		return nil
	}
	const t = v1alpha1.TypeLineageSent
	is := func(c xpv2.Condition) []xpv2.Condition { return []xpv2.Condition{c} }
	if j.Request.Kinds[observev1alpha1.LineageGroupVersionKind] == compose.Unavailable {
		return is(compose.False(t, v1alpha1.ReasonProviderMissing, "provider-capstan, which sends the events, is not installed: install the package capstan"))
	}
	var connected map[string]any
	o := j.Request.Observed[Resource]
	if o != nil {
		connected = compose.Condition(o.Map(), string(v1alpha1.TypeConnected))
	}
	refused := refusal(o)
	switch status := compose.Text(connected, "status"); {
	case status == string(corev1.ConditionFalse):
		return is(compose.False(t, xpv2.ConditionReason(compose.Text(connected, "reason")), compose.Text(connected, "message")))
	case refused != "":
		return is(compose.False(t, v1alpha1.ReasonRejected, refused))
	case status == string(corev1.ConditionTrue):
		return is(compose.True(t, v1alpha1.ReasonAnswered, "the server takes the events of runs"))
	default:
		return is(compose.Unknown(t, v1alpha1.ReasonNothingSent, "no event has been sent yet: if this stays, read the log of the provider"))
	}
}

// refusal of the newest run, if the server does not take its events, or empty.
func refusal(o compose.Object) string {
	seen, _ := observed.Status[observev1alpha1.LineageObservation](o)
	if len(seen.Sent) == 0 || seen.Sent[len(seen.Sent)-1].Refused == "" {
		return ""
	}
	last := seen.Sent[len(seen.Sent)-1]
	return "run " + last.Run + ": " + last.Refused
}

// Runs that the observed Lineage has, or none.
func (j Job) Runs() []observev1alpha1.LineageRun {
	p, _ := observed.Parameters[observev1alpha1.LineageParameters](j.Request.Observed[Resource])
	return p.Runs
}
