// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// pointsTo fails until an alias points to a version, or to none.
func (c catalogue) pointsTo(model, alias, version string) func(context.Context) error {
	return func(ctx context.Context) error {
		v, err := c.aliased(ctx, model, alias)
		switch {
		case version == "" && err == nil:
			return fmt.Errorf("the alias %s still points to version %s", alias, v.Version)
		case version == "":
			return nil
		case err == nil && v.Version != version:
			return fmt.Errorf("the alias %s points to version %s, want %s", alias, v.Version, version)
		default:
			return err
		}
	}
}

// TestAliasFollowsRollout has one alias in the registry follow the candidate, and one the live revision.
func TestAliasFollowsRollout(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	c := newCatalogue(t)
	model := "reco-" + ns
	secret(t, ns, "opens", map[string][]byte{"ca.crt": []byte(outsideAuthority(t)), "username": []byte(c.username), "password": []byte(c.password)})
	m := &registryv1alpha1.RegisteredModel{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: model}}
	if err := apply(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the RegisteredModel is Ready", well(m))
	for i := range 3 {
		n := strconv.Itoa(i + 1)
		v := &registryv1alpha1.ModelVersion{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: model + "-" + n},
			Spec: registryv1alpha1.ModelVersionSpec{ForProvider: registryv1alpha1.ModelVersionParameters{
				Model: model, Source: new(c.log(t, "e2e/"+ns+"/"+n, weightsOf(n))),
			}},
		}
		if err := apply(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		// The server numbers versions in the order of their creation.
		eventually(t, "ModelVersion "+n+" is Ready", well(v))
	}
	c.point(t, model, "champion", "1")

	reco := func(modify ...func(*v1alpha1.Lifecycle)) *v1alpha1.Algorithm {
		return serving(ns, "reco", v1alpha1.Model{
			URI: "models:/" + model + "@champion?endpoint=" + mlflowURL, LiveAlias: "live", CandidateAlias: "challenger", Credentials: "opens",
		}, rolling(append(modify, canary(50))...))
	}
	edit(t, reco())
	within(t, 2*timeout, "version 1 is served", weightsOf("1").serves(host))
	eventually(t, "the rollout is stable", rollout(ns, "reco", v1alpha1.RolloutStable, ""))
	eventually(t, "the alias live follows", c.follows(model, "1", ns, "reco"))
	if err := c.pointsTo(model, "challenger", "")(t.Context()); err != nil {
		t.Errorf("nothing is tried: %v", err)
	}
	courseOf(t, ns, "reco")
	calls := callers(t, ns, "reco", host, outsideKept, outsideNew)

	began := time.Now()
	c.point(t, model, "champion", "2")
	lookAgain(t, ns)
	within(t, 2*timeout, "half of the callers may reach version 2", stepping(ns, "reco", 50))
	eventually(t, "the alias of what is tried is on version 2", c.pointsTo(model, "challenger", "2"))
	t.Logf("the alias of what is tried is there %s after the alias that is followed moved", time.Since(began).Round(100*time.Millisecond))
	if err := c.pointsTo(model, "live", "1")(t.Context()); err != nil {
		t.Errorf("version 1 is live while version 2 is tried: %v", err)
	}
	within(t, 2*timeout, "all traffic goes to version 2", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	began = time.Now()
	eventually(t, "the alias live is on version 2", c.pointsTo(model, "live", "2"))
	t.Logf("the alias live moved %s after the promotion", time.Since(began).Round(100*time.Millisecond))
	within(t, timeout, "the rollout is over", rollout(ns, "reco", v1alpha1.RolloutStable, ""))
	eventually(t, "the alias live tells who serves it", c.follows(model, "2", ns, "reco"))
	eventually(t, "nothing is tried any more", c.pointsTo(model, "challenger", ""))

	c.point(t, model, "champion", "3")
	lookAgain(t, ns)
	within(t, 2*timeout, "half of the callers may reach version 3", stepping(ns, "reco", 50))
	eventually(t, "the alias of what is tried is on version 3", c.pointsTo(model, "challenger", "3"))
	candidate := rolloutOf(t.Context(), ns, "reco").Candidate
	edit(t, requesting(reco(), v1alpha1.RolloutRequests{Abort: candidate}))
	within(t, 2*timeout, "version 3 is rolled back", rollout(ns, "reco", v1alpha1.RolloutRolledBack, ""))
	failed(t, ns, "reco", string(v1alpha1.ReasonAborted), "spec.rollout.abort")
	if err := c.pointsTo(model, "live", "2")(t.Context()); err != nil {
		t.Errorf("a rollback should leave the alias live where it was: %v", err)
	}
	if err := weightsOf("2").serves(host)(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.pointsTo(model, "challenger", "3")(t.Context()); err != nil {
		t.Errorf("what was rolled back keeps its alias while it is asked for: %v", err)
	}

	c.point(t, model, "champion", "2")
	lookAgain(t, ns)
	eventually(t, "the rollout is stable", rollout(ns, "reco", v1alpha1.RolloutStable, ""))
	eventually(t, "nothing is tried any more", c.pointsTo(model, "challenger", ""))
	eventually(t, "the alias live is where it was", c.follows(model, "2", ns, "reco"))
	calls.end(t)
}
