// SPDX-License-Identifier: Apache-2.0

// Package doctor finds what a cluster lacks for Capstan. It only reads, and reports what it has no right to read.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// A Level is how much a finding matters.
type Level string

// Levels of findings.
const (
	// OK: nothing to do.
	OK Level = "ok"
	// Note: a feature is missing that not everybody needs.
	Note Level = "note"
	// Unknown: it cannot be read.
	Unknown Level = "unknown"
	// Missing: Capstan does not work without it.
	Missing Level = "MISSING"
)

// A Finding is the result of one check.
type Finding struct {
	Level   Level
	Subject string
	Found   string
	Remedy  string
}

// Oldest versions that Capstan works with.
const (
	oldestKubernetes = "1.30.0"
	oldestCrossplane = "2.4.0"
)

// crossplaneNamespace is the usual one, which platform.yaml names.
const crossplaneNamespace = "crossplane-system"

// remedy of most findings.
const install = "install Capstan as docs/install.md describes"

// Resources that the checks read.
var (
	crds         = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	xrds         = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v2", Resource: "compositeresourcedefinitions"}
	settings     = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1beta1", Resource: "environmentconfigs"}
	roles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	policies     = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	classes      = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	apiServices  = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	gatewayClass = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gatewayclasses"}
	connections  = schema.GroupVersionResource{Group: "capstan.dev", Version: "v1alpha1", Resource: "clusterproviderconfigs"}
)

// Examine a cluster.
func Examine(ctx context.Context, c *cluster.Cluster) []Finding {
	d := &doctor{ctx: ctx, c: c}
	d.kubernetes()
	d.crossplane()
	d.packages()
	d.definitions()
	d.platform()
	d.settings()
	d.connections()
	d.certManager()
	d.gateway()
	d.monitoring()
	d.storage()

	return d.findings
}

type doctor struct {
	ctx      context.Context //nolint:containedctx // It lives as long as one examination.
	c        *cluster.Cluster
	findings []Finding
}

func (d *doctor) say(level Level, subject, found, remedy string) {
	d.findings = append(d.findings, Finding{Level: level, Subject: subject, Found: found, Remedy: remedy})
}

// get an object of no namespace, or nil when it does not exist. Any other failure is a finding.
func (d *doctor) get(resource schema.GroupVersionResource, name string) (u *unstructured.Unstructured, known bool) {
	u, err := d.c.Dynamic.Resource(resource).Get(d.ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		return u, true
	case apierrors.IsNotFound(err):
		return nil, true
	default:
		d.say(Unknown, resource.Resource+" "+name, "it cannot be read: "+err.Error(), fmt.Sprintf("ask for the right to get %s.%s", resource.Resource, resource.Group))

		return nil, false
	}
}

// list objects.
func (d *doctor) list(resource schema.GroupVersionResource, namespace, selector string) (all []unstructured.Unstructured, known bool) {
	list, err := d.c.Dynamic.Resource(resource).Namespace(namespace).List(d.ctx, metav1.ListOptions{LabelSelector: selector})
	switch {
	case err == nil:
		return list.Items, true
	case apierrors.IsNotFound(err):
		return nil, true
	default:
		d.say(Unknown, resource.Resource, "they cannot be read: "+err.Error(), fmt.Sprintf("ask for the right to list %s.%s", resource.Resource, resource.Group))

		return nil, false
	}
}

func (d *doctor) kubernetes() {
	body, err := d.c.Raw(d.ctx, "/version", nil)
	if err != nil {
		d.say(Unknown, "Kubernetes", err.Error(), "check the address and the login of the cluster: kubectl version")

		return
	}
	defer func() { _ = body.Close() }()
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.NewDecoder(body).Decode(&v); err != nil {
		d.say(Unknown, "Kubernetes", "its version cannot be read: "+err.Error(), "check that this is the API server of a cluster: kubectl version")

		return
	}
	d.atLeast("Kubernetes", v.GitVersion, oldestKubernetes, "upgrade the cluster")
}

// atLeast a version.
func (d *doctor) atLeast(subject, found, oldest, remedy string) {
	v, err := version.ParseSemantic(found)
	switch {
	case err != nil:
		d.say(Unknown, subject, fmt.Sprintf("its version %q cannot be compared with %s", found, oldest), "see docs/versions.md")
	case v.LessThan(version.MustParseSemantic(oldest)):
		d.say(Missing, subject, fmt.Sprintf("%s is older than %s", found, oldest), remedy)
	default:
		d.say(OK, subject, found, "")
	}
}

func (d *doctor) crossplane() {
	list, known := d.list(cluster.Deployments, crossplaneNamespace, "app=crossplane")
	if !known {
		return
	}
	if len(list) == 0 {
		d.say(Missing, "Crossplane", "there is no Deployment of it in namespace "+crossplaneNamespace, "install Crossplane v2.4 or later in that namespace")

		return
	}
	containers, _, _ := unstructured.NestedSlice(list[0].Object, "spec", "template", "spec", "containers")
	for _, one := range containers {
		container, ok := one.(map[string]any)
		if !ok {
			continue
		}
		image, _, _ := unstructured.NestedString(container, "image")
		d.atLeast("Crossplane", tag(image), oldestCrossplane, "upgrade Crossplane: packages of Capstan are refused by older versions")
		args, _, _ := unstructured.NestedStringSlice(container, "args")
		flags := "the default flags"
		if len(args) > 2 {
			flags = strings.Join(args[2:], " ")
		}
		if slices.Contains(args, "--enable-signature-verification") {
			d.say(OK, "Crossplane flags", flags, "")

			return
		}
		d.say(Note, "Crossplane flags", flags, "signatures of packages are verified only with --enable-signature-verification: see docs/install.md#signatures")

		return
	}
}

// tag of an image, without a digest.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndex(image, "/")+1:]
	_, t, _ := strings.Cut(name, ":")

	return t
}

// packages of Capstan, which have the same version.
func (d *doctor) packages() {
	versions := map[string]bool{}
	for _, p := range []struct{ resource, name string }{
		{"configurations", "capstan-dev-capstan"},
		{"functions", "capstan-dev-function-capstan"},
		{"providers", "capstan-dev-provider-capstan"},
	} {
		u, known := d.get(schema.GroupVersionResource{Group: "pkg.crossplane.io", Version: "v1", Resource: p.resource}, p.name)
		if !known {
			continue
		}
		subject := "package " + p.name
		if u == nil {
			d.say(Missing, subject, "it is not installed", install)

			continue
		}
		ref, _, _ := unstructured.NestedString(u.Object, "spec", "package")
		v := u.GetLabels()["app.kubernetes.io/version"]
		if t := tag(ref); t != "" {
			v = t
		}
		if v != "" {
			versions[v] = true
		}
		if why := unmet(u, "Installed", "Healthy"); why != "" {
			d.say(Missing, subject, why, fmt.Sprintf("kubectl describe %s.pkg.crossplane.io %s", p.resource, p.name))

			continue
		}
		d.say(OK, subject, "healthy "+v, "")
	}
	if len(versions) > 1 {
		all := make([]string, 0, len(versions))
		for v := range versions {
			all = append(all, v)
		}
		slices.Sort(all)
		d.say(Missing, "versions of packages", "they differ: "+strings.Join(all, ", "), "wait until an upgrade is over, or install the three packages of one release")
	}
}

// unmet conditions of an object, with their messages, or nothing.
func unmet(u *unstructured.Unstructured, types ...string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, t := range types {
		status, message := "", "it has no such condition"
		for _, one := range conditions {
			if c, ok := one.(map[string]any); ok && c["type"] == t {
				status, _ = c["status"].(string)
				message, _ = c["message"].(string)
			}
		}
		if status != "True" {
			return strings.TrimSuffix(fmt.Sprintf("%s is not True: %s", t, message), ": ")
		}
	}

	return ""
}

// definitions of the APIs.
func (d *doctor) definitions() {
	for _, name := range []string{"algorithms.capstan.dev", "databases.capstan.dev", "experiments.capstan.dev"} {
		d.established(xrds, "definition "+name, name, "kubectl describe xrd "+name)
	}
	for _, name := range []string{
		"accesses.access.capstan.dev", "analyses.observe.capstan.dev", "autoscalers.observe.capstan.dev", "buckets.storage.capstan.dev",
		"credentials.credentials.capstan.dev", "hooks.observe.capstan.dev", "receivers.events.capstan.dev", "signals.events.capstan.dev", "topologies.observe.capstan.dev", "volumeclaims.storage.capstan.dev",
	} {
		d.established(crds, "kind "+name, name, "the ManagedResourceActivationPolicy capstan activates it: kubectl describe mrap capstan")
	}
}

func (d *doctor) established(resource schema.GroupVersionResource, subject, name, remedy string) {
	u, known := d.get(resource, name)
	switch {
	case !known:
	case u == nil:
		d.say(Missing, subject, "it is not there", install)
	default:
		if why := unmet(u, "Established"); why != "" {
			d.say(Missing, subject, why, remedy)

			return
		}
		d.say(OK, subject, "established", "")
	}
}

// platform is what packages cannot carry.
func (d *doctor) platform() {
	const remedy = "kubectl apply --server-side -f platform.yaml, of the release that runs"
	for _, o := range []struct {
		resource schema.GroupVersionResource
		name     string
	}{
		{roles, "capstan:compose"},
		{roles, "capstan:postgres-member"},
		{roles, "capstan:mysql-member"},
		{policies, "capstan-database-data"},
		{policies, "capstan-status"},
		{settings, "capstan-kinds"},
	} {
		u, known := d.get(o.resource, o.name)
		switch {
		case !known:
		case u == nil:
			d.say(Missing, "platform.yaml", fmt.Sprintf("%s %s is not there", o.resource.Resource, o.name), remedy)
		default:
			d.say(OK, "platform.yaml", fmt.Sprintf("%s %s", o.resource.Resource, o.name), "")
		}
	}
}

func (d *doctor) settings() {
	u, known := d.get(settings, "capstan")
	switch {
	case !known:
	case u == nil:
		d.say(Note, "settings", "there is no EnvironmentConfig capstan: the defaults are in force", "see docs/api/settings.md")
	default:
		d.say(OK, "settings", "EnvironmentConfig capstan", "")
	}
}

// connections to what is outside of the cluster.
func (d *doctor) connections() {
	list, known := d.list(connections, "", "")
	if !known {
		return
	}
	for _, name := range []struct{ config, feature, page string }{
		{"prometheus", "rollouts that decide on evidence, and scaling on latency", "docs/metrics.md"},
		{"s3", "backups to buckets of the platform", "docs/connect-s3.md"},
		{"mlflow", "a model registry", "docs/connect-mlflow.md"},
		{"openlineage", "events about runs of Pipelines and Trainings", "docs/pipeline.md"},
	} {
		i := slices.IndexFunc(list, func(u unstructured.Unstructured) bool { return u.GetName() == name.config })
		if i < 0 {
			d.say(Note, "ClusterProviderConfig "+name.config, "it is not there; needed for "+name.feature, "create it: see "+name.page)

			continue
		}
		if why := unmet(&list[i], "Connected"); why != "" && !strings.Contains(why, "no such condition") {
			d.say(Missing, "ClusterProviderConfig "+name.config, why, "kubectl describe clusterproviderconfig "+name.config)

			continue
		}
		d.say(OK, "ClusterProviderConfig "+name.config, "there", "")
	}
}

func (d *doctor) certManager() {
	u, known := d.get(crds, "certificates.cert-manager.io")
	switch {
	case !known:
	case u == nil:
		level := Note
		if all, known := d.list(cluster.Databases, "", ""); known && len(all) > 0 {
			level = Missing
		}
		d.say(level, "cert-manager", "it is not installed, and no Database starts without it", "install cert-manager v1; not needed where there are only Algorithms")
	default:
		d.say(OK, "cert-manager", "its kinds are there", "")
		d.webhook()
	}
}

// webhook of cert-manager: while it is down, Crossplane finishes no pass of a Database.
func (d *doctor) webhook() {
	list, known := d.list(cluster.Deployments, "", "app.kubernetes.io/component=webhook,app.kubernetes.io/instance=cert-manager")
	if !known || len(list) == 0 {
		return
	}
	if n, _, _ := unstructured.NestedInt64(list[0].Object, "spec", "replicas"); n < 2 {
		d.say(Note, "cert-manager webhook", "it has one replica: while its node is down, conditions of Databases are Unknown", "run two replicas on different nodes")
	}
}

func (d *doctor) gateway() {
	u, known := d.get(crds, "httproutes.gateway.networking.k8s.io")
	switch {
	case !known:
	case u == nil:
		d.say(Note, "Gateway API", "it is not installed; needed for spec.route, and to split traffic by weight", "install Gateway API v1 and an implementation")
	default:
		list, known := d.list(gatewayClass, "", "")
		accepted := slices.ContainsFunc(list, func(u unstructured.Unstructured) bool { return unmet(&u, "Accepted") == "" })
		if known && !accepted {
			d.say(Note, "Gateway API", "no GatewayClass is accepted: no implementation runs", "install an implementation")
		} else if known {
			d.say(OK, "Gateway API", "a GatewayClass is accepted", "")
		}
	}
}

func (d *doctor) monitoring() {
	for _, o := range []struct {
		resource                  schema.GroupVersionResource
		subject, name, feature, f string
	}{
		{crds, "Prometheus Operator", "servicemonitors.monitoring.coreos.com", "alerts and scraping of Databases", "install the Prometheus Operator, or scrape as docs/metrics.md describes"},
		{crds, "PodMonitors", "podmonitors.monitoring.coreos.com", "scraping of Trainings and Pipelines", "install the Prometheus Operator, or scrape as docs/install.md describes"},
		{apiServices, "metrics API", "v1beta1.metrics.k8s.io", "scaling on CPU", "install metrics-server"},
		{apiServices, "external metrics API", "v1beta1.external.metrics.k8s.io", "scaling on latency and load", "install prometheus-adapter with adapter.yaml of the release"},
	} {
		u, known := d.get(o.resource, o.name)
		switch {
		case !known:
		case u == nil:
			d.say(Note, o.subject, "it is not there; needed for "+o.feature, o.f)
		default:
			if why := unmet(u, "Available"); o.resource == apiServices && why != "" {
				d.say(Missing, o.subject, why, "kubectl describe apiservice "+o.name)

				continue
			}
			d.say(OK, o.subject, "there", "")
		}
	}
}

func (d *doctor) storage() {
	list, known := d.list(classes, "", "")
	if !known {
		return
	}
	const isDefault = "storageclass.kubernetes.io/is-default-class"
	i := slices.IndexFunc(list, func(u unstructured.Unstructured) bool { return u.GetAnnotations()[isDefault] == "true" })
	if i < 0 {
		d.say(Note, "StorageClass", fmt.Sprintf("none of %d is the default", len(list)), "annotate one with "+isDefault+"=true, or name one in the plans of the settings")

		return
	}
	if grows, _, _ := unstructured.NestedBool(list[i].Object, "allowVolumeExpansion"); !grows {
		d.say(Note, "StorageClass", list[i].GetName()+" does not let volumes grow", "set allowVolumeExpansion: true if its driver can")

		return
	}
	d.say(OK, "StorageClass", list[i].GetName()+", volumes can grow", "")
}
