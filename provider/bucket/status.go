// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/bucket/feature"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// disowned is the status of a Bucket whose bucket of this name is not its own. What was set on it is remembered, in case its tag
// was lost and comes back.
func disowned(was v1alpha1.BucketObservation, name string) v1alpha1.BucketObservation {
	if was.BucketName != name {
		return v1alpha1.BucketObservation{}
	}
	return v1alpha1.BucketObservation{BucketName: name, Features: was.Features, TagKeys: was.TagKeys}
}

// owned is the status of a Bucket that has this bucket. What was set on another bucket must not be removed from this one.
func owned(was v1alpha1.BucketObservation, b found) v1alpha1.BucketObservation {
	if was.BucketName != "" && was.BucketName != b.Name {
		was.Features, was.TagKeys = nil, nil
	}
	was.BucketName, was.Region, was.Endpoint, was.Owned = b.Name, b.region, b.endpoint, b.standing == ours
	return was
}

// record of features in a status.
func record(at v1alpha1.BucketObservation) feature.Record {
	return feature.Record{Features: at.Features, TagKeys: at.TagKeys, Unsupported: at.Unsupported}
}

// withRecord is a status with this record of features.
func withRecord(at v1alpha1.BucketObservation, r feature.Record) v1alpha1.BucketObservation {
	at.Features, at.TagKeys, at.Unsupported = r.Features, r.TagKeys, r.Unsupported
	return at
}

// report in the status of cr what is known of features.
func report(cr *v1alpha1.Bucket, p feature.Plan) {
	at := withRecord(cr.Status.AtProvider, p.Record(record(cr.Status.AtProvider)))
	c := xpv2.Condition{
		Type:               v1alpha1.TypeFeaturesSupported,
		Status:             corev1.ConditionTrue,
		Reason:             v1alpha1.ReasonSupported,
		LastTransitionTime: metav1.Now(),
	}
	if len(at.Unsupported) > 0 {
		c.Status, c.Reason = corev1.ConditionFalse, v1alpha1.ReasonNotImplemented
		c.Message = "the server does not implement " + strings.Join(at.Unsupported, ", ") +
			": take it out of spec.forProvider, or use a server that has it"
	}
	cr.Status.AtProvider = at
	cr.SetConditions(c.WithObservedGeneration(cr.GetGeneration()))
}

func ready(cr *v1alpha1.Bucket) {
	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))
}

// refuse reports that cr has no bucket, and why.
func refuse(cr *v1alpha1.Bucket, f *outside.Failure) error {
	if !meta.WasDeleted(cr) {
		cr.SetConditions(xpv2.Unavailable().WithMessage(f.Error()).WithObservedGeneration(cr.GetGeneration()))
	}
	return f
}

// unavailable reports that cr has a bucket that was never as the spec says. One that was once stays available: clients must not
// lose it because one of its features cannot be changed.
func unavailable(cr *v1alpha1.Bucket, f *outside.Failure) error {
	if cr.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue {
		return f
	}
	return refuse(cr, f)
}
