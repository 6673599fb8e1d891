// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// mlflowURL is the address of the embedded cluster's MLflow, for pods and for these tests.
const mlflowURL = "https://mlflow.outside.svc"

// A catalogue is MLflow as used by people who do not know Capstan.
type catalogue struct {
	client             *http.Client
	username, password string
}

func newCatalogue(t *testing.T) catalogue {
	t.Helper()
	login := outsideSecret(t, "mlflow")

	return catalogue{client: outsideClient(t), username: string(login[v1alpha1.KeyUsername]), password: string(login[v1alpha1.KeyPassword])}
}

// call the server, and decode its response unless the target is nil.
func (c catalogue) call(ctx context.Context, method, path string, body io.Reader, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, mlflowURL+"/api/2.0/"+path, body)
	if err != nil {
		return err
	}
	req.SetBasicAuth(c.username, c.password)
	if _, ok := body.(*bytes.Reader); ok {
		req.Header.Set("Content-Type", "application/json")
	}
	rsp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = rsp.Body.Close() }()
	said, err := io.ReadAll(rsp.Body)
	if err != nil {
		return err
	}
	if rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, rsp.Status, said)
	}
	if answer == nil {
		return nil
	}

	return json.Unmarshal(said, answer)
}

// log a model as artifacts on the server, and return their URI.
func (c catalogue) log(t *testing.T, path string, w weights) string {
	t.Helper()
	for name, content := range w {
		if err := c.call(t.Context(), http.MethodPut, "mlflow-artifacts/artifacts/"+path+"/"+name, bytes.NewBufferString(content), nil); err != nil {
			t.Fatal(err)
		}
	}

	return "mlflow-artifacts:/" + path
}

// point an alias to a version.
func (c catalogue) point(t *testing.T, model, alias, version string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"name": model, "alias": alias, "version": version})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.call(t.Context(), http.MethodPost, "mlflow/registered-models/alias", bytes.NewReader(body), nil); err != nil {
		t.Fatal(err)
	}
}

// A registered version with its tags.
type registered struct {
	Version string `json:"version"`
	Tags    []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"tags"`
}

func (r registered) tag(key string) string {
	for _, t := range r.Tags {
		if t.Key == key {
			return t.Value
		}
	}

	return ""
}

// version of a model.
func (c catalogue) version(ctx context.Context, model, version string) (registered, error) {
	var answer struct {
		Version registered `json:"model_version"`
	}
	query := url.Values{"name": {model}, "version": {version}}

	return answer.Version, c.call(ctx, http.MethodGet, "mlflow/model-versions/get?"+query.Encode(), nil, &answer)
}

// aliased is the version that an alias points to.
func (c catalogue) aliased(ctx context.Context, model, alias string) (registered, error) {
	var answer struct {
		Version registered `json:"model_version"`
	}
	query := url.Values{"name": {model}, "alias": {alias}}

	return answer.Version, c.call(ctx, http.MethodGet, "mlflow/registered-models/alias?"+query.Encode(), nil, &answer)
}

// follows fails until the alias live points to a version and names the Algorithm that serves it.
func (c catalogue) follows(model, version, ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err != nil {
			return err
		}
		v, err := c.aliased(ctx, model, "live")
		if err != nil {
			return err
		}
		if v.Version != version || v.tag("capstan.dev/live.algorithm") != ns+"/"+name || v.tag("capstan.dev/live.revision") != a.Status.Revision.Live {
			return fmt.Errorf("the alias live points to version %s with the tags %v, want version %s and revision %s",
				v.Version, v.Tags, version, a.Status.Revision.Live)
		}
		if m := a.Status.Model; m == nil || m.Version != version {
			return fmt.Errorf("status.model is %+v, want version %s", m, version)
		}

		return nil
	}
}

// lookAgain checks the registry now for the versions of Algorithms, instead of once a minute.
func lookAgain(t *testing.T, ns string) {
	t.Helper()
	all := &registryv1alpha1.ModelVersionList{}
	if err := kube.List(t.Context(), all, client.InNamespace(ns), client.HasLabels{"capstan.dev/algorithm"}); err != nil || len(all.Items) == 0 {
		t.Fatalf("no Analysis asks the registry: %v", err)
	}
	for _, mv := range all.Items {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.org/look":%q}}}`, time.Now().Format(time.RFC3339Nano))
		if err := kube.Patch(t.Context(), &mv, client.RawPatch(types.MergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// TestModelFromRegistry follows an alias through its life, and through an outage of the registry.
func TestModelFromRegistry(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	c, s := newCatalogue(t), newShelf(t, ns, "models")
	model := "reco-" + ns
	key := outsideSecret(t, "s3")
	secret(t, ns, "opens", map[string][]byte{
		"ca.crt": []byte(outsideAuthority(t)), "username": []byte(c.username), "password": []byte(c.password),
		"accessKeyId": key["accessKeyId"], "secretAccessKey": key["secretAccessKey"],
	})

	// Versions 1 and 2 are on MLflow itself, 3 is on S3, and the files of 4 are deleted.
	v1, v2, v3 := weightsOf("1"), weightsOf("2"), weightsOf("3")
	register := func(model string, sources ...string) {
		m := &registryv1alpha1.RegisteredModel{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: model}}
		if err := apply(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the RegisteredModel is Ready", well(m))
		for i, source := range sources {
			v := &registryv1alpha1.ModelVersion{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("%s-%d", model, i+1)},
				Spec:       registryv1alpha1.ModelVersionSpec{ForProvider: registryv1alpha1.ModelVersionParameters{Model: model, Source: new(source)}},
			}
			if i == 1 {
				v.Spec.ForProvider.Tags = map[string]string{"digest": v2.digest()}
			}
			if err := apply(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the ModelVersion is Ready", well(v))
		}
	}
	register(model, c.log(t, "e2e/"+ns+"/1", v1), c.log(t, "e2e/"+ns+"/2", v2), s.put(t, "reco/3", v3), "mlflow-artifacts:/e2e/"+ns+"/4")

	reco := func(model, alias string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		return serving(ns, "reco", v1alpha1.Model{
			URI:       "models:/" + model + "@" + alias + "?endpoint=" + mlflowURL + "&s3Endpoint=https://s3.outside.svc",
			LiveAlias: "live", Credentials: "opens",
		}, modify...)
	}
	resolves := func(status corev1.ConditionStatus, reason xpv2.ConditionReason, words ...string) func(context.Context) error {
		return algorithmCondition(ns, "reco", v1alpha1.TypeModelResolved, status, reason, words...)
	}

	// The alias does not exist at first.
	edit(t, reco(model, "champion"))
	eventually(t, "the missing alias is reported", resolves(corev1.ConditionFalse, v1alpha1.ReasonRegistryFailed, `"champion"`, model))
	c.point(t, model, "champion", "1")
	began := time.Now()
	lookAgain(t, ns)
	within(t, 2*timeout, "version 1 is served", v1.serves(host))
	t.Logf("a model from MLflow is served %s after the creation of its alias", time.Since(began).Round(100*time.Millisecond))
	eventually(t, "the alias live follows", c.follows(model, "1", ns, "reco"))
	eventually(t, "it is Ready", ready(ns, "reco", v1alpha1.PhaseReady, 1))
	calls := callers(t, ns, "reco", host, outsideNew)

	began = time.Now()
	c.point(t, model, "champion", "2")
	within(t, 2*timeout, "version 2 is served", v2.serves(host))
	t.Logf("an alias that moved is served after %s", time.Since(began).Round(100*time.Millisecond))
	eventually(t, "the alias live follows", c.follows(model, "2", ns, "reco"))
	if a, err := get(t.Context(), &v1alpha1.Algorithm{}, ns, "reco"); err != nil || a.Status.Model.Digest != v2.digest() {
		t.Errorf("the digest from the registry should be in the status: %+v (%v)", a.Status.Model, err)
	}
	within(t, 2*timeout, "version 1 is gone", alone(ns, "reco"))

	// The alias moves on while pods of a bad version start: the next version is served, and the bad one never was.
	c.point(t, model, "champion", "4")
	lookAgain(t, ns)
	eventually(t, "missing files are reported", algorithmCondition(ns, "reco", v1alpha1.TypeUpdated, corev1.ConditionFalse,
		v1alpha1.ReasonModelNotFound, "e2e/"+ns+"/4"))
	if err := v2.serves(host)(t.Context()); err != nil {
		t.Error(err)
	}
	c.point(t, model, "champion", "3")
	lookAgain(t, ns)
	within(t, 2*timeout, "version 3 is served", v3.serves(host))
	eventually(t, "the alias live follows", c.follows(model, "3", ns, "reco"))
	if v, err := c.version(t.Context(), model, "4"); err != nil || v.tag("capstan.dev/live.revision") != "" {
		t.Errorf("version 4 was never live, but has the tags %v (%v)", v.Tags, err)
	}
	within(t, 2*timeout, "version 2 is gone", alone(ns, "reco"))

	// Another Algorithm changes its model, and a third names a missing one.
	other := "other-" + ns
	register(other, s.put(t, "other/1", v1))
	c.point(t, other, "champion", "1")
	second := func(model string) *v1alpha1.Algorithm {
		a := reco(model, "champion")
		a.Name, a.Spec.Model.LiveAlias = "second", "second"
		a.Spec.Route.Host = hostOf(ns, "second")

		return a
	}
	create(t, second(other))
	eventually(t, "the other model is served", v1.serves(hostOf(ns, "second")))
	edit(t, second(model))
	third := second("none-" + ns)
	third.Name, third.Spec.Route = "third", nil
	edit(t, third)
	eventually(t, "a missing model is reported", algorithmCondition(ns, "third", v1alpha1.TypeModelResolved, corev1.ConditionFalse, v1alpha1.ReasonRegistryFailed, "none-"+ns))
	within(t, 2*timeout, "the first model is served in place of the other", v3.serves(hostOf(ns, "second")))
	eventually(t, "the alias of one goes, and that of the other comes", func(ctx context.Context) error {
		if v, err := c.aliased(ctx, other, "second"); err == nil {
			return fmt.Errorf("the other model still has the alias, on version %s", v.Version)
		}
		v, err := c.aliased(ctx, model, "second")
		if err == nil && v.Version != "3" {
			err = fmt.Errorf("the alias is on version %s", v.Version)
		}

		return err
	})

	// The registry stops: known versions roll out, unknown ones wait for it.
	c.point(t, model, "challenger", "2")
	t.Cleanup(func() { _ = scaleOutside(context.Background(), "mlflow", 1) })
	if err := scaleOutside(t.Context(), "mlflow", 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "MLflow is gone", func(ctx context.Context) error {
		if _, err := c.version(ctx, model, "3"); err == nil {
			return errors.New("it answers")
		}

		return nil
	})
	lookAgain(t, ns)
	eventually(t, "the outage is reported", resolves(corev1.ConditionFalse, v1alpha1.ReasonRegistryFailed, "The live revision is not affected"))
	edit(t, reco(model, "champion", versioned("edited")))
	within(t, 2*timeout, "an edit is rolled out all the same", live(ns, "reco", "edited"))
	if err := v3.serves(host)(t.Context()); err != nil {
		t.Error(err)
	}
	within(t, 2*timeout, "the one before is gone", alone(ns, "reco"))
	edit(t, reco(model, "challenger", versioned("edited")))
	eventually(t, "another alias waits", algorithmCondition(ns, "reco", v1alpha1.TypeUpdated, corev1.ConditionFalse, v1alpha1.ReasonAwaitingModel, "ModelResolved"))
	eventually(t, "for the registry", resolves(corev1.ConditionFalse, v1alpha1.ReasonRegistryFailed, `"challenger"`))
	if err := v3.serves(host)(t.Context()); err != nil {
		t.Error(err)
	}
	if err := scaleOutside(t.Context(), "mlflow", 1); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	within(t, 2*timeout, "version 2 is served", v2.serves(host))
	t.Logf("an alias that waited is served %s after MLflow was started", time.Since(began).Round(100*time.Millisecond))
	eventually(t, "the alias live follows", c.follows(model, "2", ns, "reco"))
	calls.end(t)
}
