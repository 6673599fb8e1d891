// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/pods"
)

// A target is a revision that the spec asks for, with what it is made of.
type target struct {
	// revision is empty while something that belongs to it is unknown; missing is what.
	revision string
	missing  *awaited

	spec, written *v1alpha1.AlgorithmSpec

	// resolved is the model of the registry, fingerprints the hashes of Secrets whose changes make revisions.
	resolved     *v1alpha1.ModelStatus
	fingerprints map[string]string

	// model that its pods fetch.
	model *pods.Source
}

// awaited is what a revision cannot be made without.
type awaited struct {
	reason  xpv2.ConditionReason
	message string
}

// target that the spec asks for.
func (f *facts) target() (target, error) {
	t := target{spec: &f.spec, written: &f.written}
	if m := f.registered(); m != nil {
		if t.resolved = f.recallModel(m); t.resolved == nil {
			t.missing = &awaited{v1alpha1.ReasonAwaitingModel, "the version of the model is not resolved: see the condition ModelResolved"}
		}
	}
	var missing *awaited
	if t.fingerprints, missing = f.fingerprints(); t.missing == nil {
		t.missing = missing
	}
	return t.named()
}

// named target: by what reaches the pods, as far as the spec says it. Neither the platform's settings nor the version of this
// function make a revision.
func (t target) named() (target, error) {
	if t.missing != nil {
		return t, nil
	}
	if m := t.spec.Model; m != nil && t.resolved != nil {
		t.model = pods.NewSource(m, t.resolved.Source, t.resolved.Digest)
	} else if m != nil {
		t.model = pods.NewSource(m, "", "")
	}
	var err error
	if t.revision, err = t.name(); err != nil {
		return t, fmt.Errorf("cannot name the revision: %w", err)
	}
	return t, nil
}

// inputs of the pods of a target.
func (f *facts) inputs(t target) pods.Inputs {
	asked := t.written.Resources
	return pods.Inputs{
		Names: f.Names, Spec: *t.spec, CompanionImage: f.Settings.Algorithm.CompanionImage,
		MemoryUnlimited: asked != nil && asked.Accelerated() && asked.Memory == nil,
		Revision:        t.revision, Model: t.model, Fingerprints: t.fingerprints,
	}
}

// rollingSecrets are those whose changes make revisions.
func (f *facts) rollingSecrets() []string {
	var secrets []string
	for _, m := range f.spec.Secrets {
		if m.Rotate == v1alpha1.RotateRolling {
			secrets = append(secrets, m.Name)
		}
	}
	return secrets
}

// fingerprints of the Secrets whose changes make revisions, and the first one that is missing. As long as one is, the spec asks
// for no revision that could start.
func (f *facts) fingerprints() (map[string]string, *awaited) {
	secrets := f.rollingSecrets()
	if len(secrets) == 0 || !f.observes {
		return nil, nil
	}
	var missing *awaited
	known, reported := map[string]string{}, f.analysis.Fingerprints()
	for _, name := range secrets {
		known[name] = reported[name]
		if known[name] == "" && missing == nil {
			missing = &awaited{
				v1alpha1.ReasonAwaitingSecret, "Secret \"" + name + "\" of spec.secrets does not exist, or has not been read yet: create it",
			}
		}
	}
	return known, missing
}

// armB of the requested experiment, or a target without a revision while it is unknown.
func (f *facts) armB(a target) (target, error) {
	if a.revision == "" || !f.rollout.Requested() {
		return target{}, nil
	}
	arm := f.rollout.Experiment.ArmB
	b := a
	b.revision, b.spec, b.written = "", withArm(a.spec, arm), withArm(a.written, arm)
	if arm.ModelVersion != "" {
		if b.resolved = f.modelOfArm(arm.ModelVersion); b.resolved == nil {
			return target{}, nil
		}
	}
	return b.named()
}

// withArm is a spec with what is different in arm B.
func withArm(spec *v1alpha1.AlgorithmSpec, arm v1alpha1.ExperimentArm) *v1alpha1.AlgorithmSpec {
	b := spec.DeepCopy()
	if arm.Image != "" {
		b.Image = arm.Image
	}
	for _, v := range arm.Env {
		if i := slices.IndexFunc(b.Env, func(e v1alpha1.EnvVar) bool { return e.Name == v.Name }); i >= 0 {
			b.Env[i] = v
		} else {
			b.Env = append(b.Env, v)
		}
	}
	return b
}
