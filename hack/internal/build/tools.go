// SPDX-License-Identifier: Apache-2.0

package build

// A Tool is a pinned Go module below hack/tools whose tool directives name the programs to build, or a file of pinned
// Python packages for a virtual environment.
type Tool struct {
	// Name of the folder below hack/tools.
	Name string
	// Module, or Python package, that is built, whose version is the tool's version.
	Module string
	// Tags for the compiler.
	Tags string
	// LinkFlags are appended to the linker's flags.
	LinkFlags string
	// CGO is on for the rare tool that links a C library.
	CGO bool
	// Python is on for a tool that is no Go module; its folder in the cache is a virtual environment.
	Python bool
}

// component-base takes its version from the linker; without one the API server is v0.0.0 and Helm refuses charts that
// ask for a Kubernetes version.
const kubernetesVersion = "-X k8s.io/component-base/version.gitVersion=v1.36.3" +
	" -X k8s.io/component-base/version.gitMajor=1" +
	" -X k8s.io/component-base/version.gitMinor=36" +
	" -X k8s.io/component-base/version.gitTreeState=clean"

// crossplaneVersion is where Crossplane's programs expect theirs; package constraints are checked against it.
const crossplaneVersion = "-X github.com/crossplane/crossplane-runtime/v2/pkg/version.version="

// Tools returns everything the cluster and the tests are made of, the small and quick first.
func Tools() []Tool {
	return []Tool{
		{Name: "etcd", Module: "go.etcd.io/etcd/server/v3"},
		{Name: "moto", Module: "moto", Python: true},
		{Name: "mlflow", Module: "mlflow", Python: true},
		{
			Name: "containerd", Module: "github.com/containerd/containerd/v2",
			Tags: "no_btrfs,no_devmapper,no_zfs",
		},
		// Without seccomp every pod fails with "config provided but seccomp not supported".
		{Name: "runc", Module: "github.com/opencontainers/runc", Tags: "seccomp", CGO: true},
		{Name: "versitygw", Module: "github.com/versity/versitygw"},
		{Name: "kubernetes", Module: "k8s.io/kubernetes", LinkFlags: kubernetesVersion},
		{Name: "helm", Module: "helm.sh/helm/v3"},
		{Name: "coredns", Module: "github.com/coredns/coredns"},
		{Name: "local-path-provisioner", Module: "github.com/rancher/local-path-provisioner"},
		// The sidecars of CSI drivers that make volumes and let them grow; both are as old as the Kubernetes that they share.
		{Name: "csi", Module: "github.com/kubernetes-csi/external-provisioner/v5"},
		{Name: "kube-router", Module: "github.com/cloudnativelabs/kube-router/v2"},
		{Name: "metrics-server", Module: "sigs.k8s.io/metrics-server"},
		{Name: "prometheus-adapter", Module: "sigs.k8s.io/prometheus-adapter"},
		{Name: "prometheus-operator", Module: "github.com/prometheus-operator/prometheus-operator"},
		{Name: "cert-manager", Module: "github.com/cert-manager/cert-manager"},
		{Name: "traefik", Module: "github.com/traefik/traefik/v3"},
		// Of all service discoveries only the one that is used; its web pages are no part of the module.
		{
			Name: "prometheus", Module: "github.com/prometheus/prometheus",
			Tags: "remove_all_sd,enable_kubernetes_sd",
		},
		{Name: "crossplane", Module: "github.com/crossplane/crossplane/v2", LinkFlags: crossplaneVersion + "v2.4.0"},
		{Name: "crossplane-cli", Module: "github.com/crossplane/cli/v2", LinkFlags: crossplaneVersion + "v2.5.0"},
	}
}
