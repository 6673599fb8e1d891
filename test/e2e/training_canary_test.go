// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/images/demo-training/model"
)

// answersAs fails until an Algorithm answers, through the Gateway, as a version.
func answersAs(host, version string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+"/predict", nil)
		if err != nil {
			return err
		}
		req.Host = host
		rsp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = rsp.Body.Close() }()
		var answer struct {
			Version string `json:"version"`
		}
		if rsp.StatusCode != http.StatusOK {
			return errors.New(rsp.Status)
		}
		if err := json.NewDecoder(rsp.Body).Decode(&answer); err != nil {
			return err
		}
		if answer.Version != version {
			return fmt.Errorf("version %q answers, want %q", answer.Version, version)
		}

		return nil
	}
}

// registeredAs fails until the result of a run is a version of the registry, and the Training is done.
func registeredAs(ns, name string, run int32) func(context.Context) error {
	return trained(ns, name, func(st v1alpha1.TrainingStatus) bool {
		return st.Phase == v1alpha1.TrainingSucceeded && st.Run == run && st.Model != nil && st.Model.Run == run && st.Model.Version == strconv.Itoa(int(run)) &&
			st.GetCondition(v1alpha1.TypeModelRegistered).Status == corev1.ConditionTrue
	})
}

// TestTrainingToCanary: nobody does anything between the end of a training and the promotion of its model, nor before a bad model is rolled
// back.
func TestTrainingToCanary(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "fraud")
	c, s := newCatalogue(t), newShelf(t, ns, "models")
	name := "fraud-" + ns
	key := outsideSecret(t, "s3")
	secret(t, ns, "opens", map[string][]byte{
		"ca.crt": []byte(outsideAuthority(t)), "username": []byte(c.username), "password": []byte(c.password),
		"accessKeyId": key["accessKeyId"], "secretAccessKey": key["secretAccessKey"],
	})
	m := &registryv1alpha1.RegisteredModel{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	if err := apply(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	train := func(id string, args ...string) {
		target := "s3://" + s.bucket + "/fraud/{run}"
		tr := training(ns, "fraud", 2, append([]string{"--step=50ms", "--every=20", "--export=" + target}, args...)...)
		tr.Spec.Secrets = []v1alpha1.MountedSecret{{Name: "models"}}
		tr.Spec.OnSuccess = &v1alpha1.TrainingOnSuccess{Register: &v1alpha1.TrainingRegister{Model: name, Source: target, Alias: "champion"}}
		if id != "" {
			tr.Spec.Rerun = &v1alpha1.TrainingRerun{ID: id}
		}
		if err := apply(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
	// All at once, as people apply a folder.
	train("", "--steps=40")
	fraud := serving(ns, "fraud", v1alpha1.Model{
		URI:       "models:/" + name + "@champion?endpoint=" + mlflowURL + "&s3Endpoint=https://s3.outside.svc",
		LiveAlias: "live", CandidateAlias: "challenger", Credentials: "opens",
	}, rolling(canary(50)))
	fraud.Spec.Args = []string{"--model-file=/models/" + model.File}
	edit(t, fraud)
	within(t, 2*timeout, "the first result is registered", registeredAs(ns, "fraud", 1))
	within(t, 2*timeout, "it is served", answersAs(host, "fraud-1"))
	within(t, timeout, "the rollout is stable", rollout(ns, "fraud", v1alpha1.RolloutStable, ""))
	courseOf(t, ns, "fraud")
	calls := callers(t, ns, "fraud", host, outsideKept, outsideNew)

	began := time.Now()
	train("second", "--steps=80")
	within(t, 2*timeout, "the second result is registered", registeredAs(ns, "fraud", 2))
	t.Logf("the second model is registered %s after the edit", time.Since(began).Round(100*time.Millisecond))
	began = time.Now()
	within(t, 2*timeout, "its canary begins by itself", stepping(ns, "fraud", 50))
	t.Logf("half of the requests reach it %s later", time.Since(began).Round(100*time.Millisecond))
	eventually(t, "the registry has what is tried", c.pointsTo(name, "challenger", "2"))
	within(t, 2*timeout, "it is promoted", rollout(ns, "fraud", v1alpha1.RolloutStable, ""))
	t.Logf("it is promoted %s after it was registered", time.Since(began).Round(100*time.Millisecond))
	if err := answersAs(host, "fraud-2")(t.Context()); err != nil {
		t.Error(err)
	}
	eventually(t, "the registry has what is live", c.pointsTo(name, "live", "2"))
	for kind, r := range calls.end(t) {
		if r.Versions["fraud-1"] == nil || r.Versions["fraud-2"] == nil {
			t.Errorf("clients %s should have had answers of both models, got %v", kind, r.Versions)
		}
	}

	bad := callOutside(t, calling(host, 60))
	train("third", "--steps=120", "--flaw=0.3")
	within(t, 2*timeout, "the third result is registered", registeredAs(ns, "fraud", 3))
	began = time.Now()
	within(t, 3*timeout, "it is rolled back by itself", rollout(ns, "fraud", v1alpha1.RolloutRolledBack, string(v1alpha1.ReasonRolledBack)))
	t.Logf("the bad model is rolled back %s after it was registered", time.Since(began).Round(100*time.Millisecond))
	failed(t, ns, "fraud", string(v1alpha1.ReasonMetricFailed), "success")
	if r := bad(); r.Versions["fraud-3"] == nil || r.Versions["fraud-2"] == nil {
		t.Errorf("clients should have had answers of both models, got %v", r.Versions)
	} else {
		for kind, n := range r.Failed {
			if kind != "status 500" {
				t.Errorf("only the model's own failures should reach clients, got %d times %s", n, kind)
			}
		}
	}
	for range 20 {
		if err := answersAs(host, "fraud-2")(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := c.pointsTo(name, "live", "2")(t.Context()); err != nil {
		t.Errorf("a rollback should leave the alias live where it was: %v", err)
	}
}
