// SPDX-License-Identifier: Apache-2.0

package build

import (
	"time"
)

// A Tool is one or more programs from a pinned Go module below hack/tools, or a file of pinned Python packages for a virtual
// environment.
type Tool struct {
	// Name of the tool, which begins its folder in the cache.
	Name string
	// Module, or Python package, that is built, whose version is the tool's version.
	Module string
	// Pins is the folder below hack/tools that pins what the tool is made of. Default: Name.
	Pins string
	// Packages are the main packages to build. Default: all tool directives of the module in Pins.
	Packages []string
	// Main is the folder in Pins that holds a main package of our own.
	Main string
	// Pruned packages are not compiled.
	Pruned []Pruned
	// LinkFlags are appended to the linker's flags.
	LinkFlags string
	// CGO is on for the rare tool that links a C library.
	CGO bool
	// Python is on for a tool that is no Go module; its folder in the cache is a virtual environment.
	Python bool
	// Usual is how long it takes on two idle processors, after the tools before it.
	Usual time.Duration
}

// shared is the module whose tools have one set of dependencies, so that a package which several tools need is compiled once.
const shared = "cluster"

// component-base takes its version from the linker; without one the API server is v0.0.0 and Helm refuses charts that
// ask for a Kubernetes version.
const kubernetesVersion = "-X k8s.io/component-base/version.gitVersion=v1.36.3" +
	" -X k8s.io/component-base/version.gitMajor=1" +
	" -X k8s.io/component-base/version.gitMinor=36" +
	" -X k8s.io/component-base/version.gitTreeState=clean"

// crossplaneVersion is where Crossplane's programs expect theirs; package constraints are checked against it.
const crossplaneVersion = "-X github.com/crossplane/crossplane-runtime/v2/pkg/version.version="

// Tools returns everything the cluster and the tests are made of. What a cluster needs before its first Algorithm comes first.
func Tools() []Tool {
	return []Tool{
		{Name: "etcd", Module: "go.etcd.io/etcd/server/v3", Usual: 50 * time.Second, Pins: shared, Packages: []string{"go.etcd.io/etcd/server/v3"}},
		// Its version of the container runtime interface is newer than the version of the shared module's Kubernetes.
		{Name: "containerd", Module: "github.com/containerd/containerd/v2", Usual: time.Minute},
		// Without seccomp every pod fails with "config provided but seccomp not supported".
		{
			Name: "runc", Module: "github.com/opencontainers/runc", Usual: 15 * time.Second, Pins: shared, CGO: true,
			Packages: []string{"github.com/opencontainers/runc"},
		},
		{
			Name: "kubernetes", Module: "k8s.io/kubernetes", Usual: 285 * time.Second, Pins: shared, LinkFlags: kubernetesVersion,
			Packages: []string{
				"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager",
				"k8s.io/kubernetes/cmd/kube-proxy", "k8s.io/kubernetes/cmd/kube-scheduler",
				"k8s.io/kubernetes/cmd/kubectl", "k8s.io/kubernetes/cmd/kubelet",
			},
		},
		{Name: "coredns", Module: "github.com/coredns/coredns", Usual: 20 * time.Second, Pins: shared, Packages: []string{"./coredns"}, Main: "coredns"},
		{
			Name: "crossplane", Module: "github.com/crossplane/crossplane/v2", Usual: 65 * time.Second, Pins: shared,
			LinkFlags: crossplaneVersion + "v2.4.0", Packages: []string{"github.com/crossplane/crossplane/v2/cmd/crossplane"},
		},
		{
			Name: "crossplane-cli", Module: "github.com/crossplane/cli/v2", Usual: 45 * time.Second, Pins: shared,
			LinkFlags: crossplaneVersion + "v2.5.0", Packages: []string{"github.com/crossplane/cli/v2/cmd/crossplane"},
		},
		{
			Name: "kube-router", Module: "github.com/cloudnativelabs/kube-router/v2", Usual: 10 * time.Second, Pins: shared,
			Packages: []string{"github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"},
		},
		{
			Name: "local-path-provisioner", Module: "github.com/rancher/local-path-provisioner", Usual: 5 * time.Second, Pins: shared,
			Packages: []string{"github.com/rancher/local-path-provisioner"},
		},
		// The sidecars of CSI drivers that make volumes and let them grow.
		{
			Name: "csi", Module: "github.com/kubernetes-csi/external-provisioner/v5", Usual: 15 * time.Second, Pins: shared,
			Packages: []string{
				"github.com/kubernetes-csi/external-provisioner/v5/cmd/csi-provisioner",
				"github.com/kubernetes-csi/external-resizer/cmd/csi-resizer",
			},
		},
		{
			Name: "metrics-server", Module: "sigs.k8s.io/metrics-server", Usual: 15 * time.Second, Pins: shared,
			Packages: []string{"sigs.k8s.io/metrics-server/cmd/metrics-server"},
		},
		// Of all service discoveries only the one that is used; its web pages are no part of the module.
		{
			Name: "prometheus", Module: "github.com/prometheus/prometheus", Usual: 65 * time.Second, Pins: shared,
			Packages: []string{"github.com/prometheus/prometheus/cmd/prometheus", "github.com/prometheus/prometheus/cmd/promtool"},
		},
		// Its module does not have the pages that it embeds. make integration runs it; no cluster needs it.
		{
			Name: "alertmanager", Module: "github.com/prometheus/alertmanager", Usual: 15 * time.Second,
			Packages: []string{"github.com/prometheus/alertmanager/cmd/alertmanager"},
			Pruned:   []Pruned{{Module: "github.com/prometheus/alertmanager", Package: "ui", Stub: "pruned/ui.go"}},
		},
		{
			Name: "prometheus-operator", Module: "github.com/prometheus-operator/prometheus-operator", Usual: 35 * time.Second, Pins: shared,
			Packages: []string{
				"github.com/prometheus-operator/prometheus-operator/cmd/operator",
				"github.com/prometheus-operator/prometheus-operator/cmd/prometheus-config-reloader",
			},
		},
		{
			Name: "prometheus-adapter", Module: "sigs.k8s.io/prometheus-adapter", Usual: 10 * time.Second, Pins: shared,
			Packages: []string{"./adapter"}, Main: "adapter",
		},
		{
			Name: "traefik", Module: "github.com/traefik/traefik/v3", Usual: 2 * time.Minute, Packages: []string{"github.com/traefik/traefik/v3/cmd/traefik"},
			// Nothing in the cluster asks a certificate authority on the Internet, by the API of any of 180 DNS providers.
			Pruned: []Pruned{{Module: "github.com/go-acme/lego/v4", Package: "providers/dns", Stub: "pruned/dns.go"}},
		},
		{
			Name: "versitygw", Module: "github.com/versity/versitygw", Usual: 50 * time.Second, Pins: shared,
			Packages: []string{"github.com/versity/versitygw/cmd/versitygw"},
		},
		{Name: "mlflow", Module: "mlflow", Usual: time.Minute, Python: true},
		{Name: "cert-manager", Module: "github.com/cert-manager/cert-manager", Usual: 30 * time.Second, Main: "."},
		{Name: "moto", Module: "moto", Usual: 15 * time.Second, Python: true},
		// Its jars come as a Python package. make nightly runs them; no cluster needs them.
		{Name: "flink", Module: "apache-flink-libraries", Usual: 40 * time.Second, Python: true},
		// The same.
		{Name: "spark", Module: "pyspark", Usual: 2 * time.Minute, Python: true},
		{Name: "mkdocs", Module: "mkdocs-material", Usual: 15 * time.Second, Python: true},
		// Its test installs it; no other cluster needs it.
		{Name: "kueue", Module: "sigs.k8s.io/kueue", Usual: 2 * time.Minute},
		// Snapshots of volumes, likewise.
		{Name: "snapshotter", Module: "github.com/kubernetes-csi/external-snapshotter/v8", Usual: 20 * time.Second},
		// What stands for kubelets and controllers where thousands of objects are needed, and no pods (hack/scale).
		{Name: "kwok", Module: "sigs.k8s.io/kwok", Usual: 80 * time.Second},
	}
}
