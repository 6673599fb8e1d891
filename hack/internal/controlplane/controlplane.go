// SPDX-License-Identifier: Apache-2.0

// Package controlplane describes the machine that runs etcd, the image registry and the Kubernetes control plane.
package controlplane

import (
	"embed"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/network"
	"github.com/capstan-dev/capstan/hack/internal/pki"
	"github.com/capstan-dev/capstan/hack/internal/xfs"
)

const (
	// Server is the URL of the API server inside the cluster.
	Server = "https://" + network.ControlPlane + ":6443"
	// RegistryName is what everybody calls the registry. Names below .localhost are the only ones that every tool agrees
	// to talk to without TLS.
	RegistryName = "registry.localhost:5000"
	// RegistryAddress is where it listens.
	RegistryAddress = network.ControlPlane + ":5000"
	// AuditLog is the audit log's path below the machine's data folder.
	AuditLog = "log/audit.log"

	registryData = "/run/registry"
	grace        = 2 * time.Second
)

//go:embed audit-policy.yaml registry.yaml
var files embed.FS

// Config is what the control plane of one cluster needs to know.
type Config struct {
	// Name of the machine.
	Name string
	// Dir is the machine's data folder, Registry the folder that keeps images when the cluster goes.
	Dir, Registry string
	// Programs as this machine and as the simulated machine see them.
	Programs   build.Programs
	Identities *pki.Identities
	// Hosts and Resolver replace /etc/hosts and /etc/resolv.conf.
	Hosts, Resolver string
}

// Prepare writes the control plane's files and returns its machine.
func Prepare(c Config) (machine.Spec, error) {
	if err := c.write(); err != nil {
		return machine.Spec{}, err
	}
	return machine.Spec{
		Name: c.Name,
		Dir:  c.Dir,
		Mounts: append(c.Programs.Mounts(),
			machine.Mount{Source: c.Registry, Target: registryData},
			machine.Mount{Source: c.Hosts, Target: "/etc/hosts"},
			machine.Mount{Source: c.Resolver, Target: "/etc/resolv.conf"},
		),
		// It carries frames between nodes as a switch does, and packets nowhere. The filter of this namespace has no say.
		Sysctls:    map[string]string{"net/ipv4/ip_forward": "0", "net/bridge/bridge-nf-call-iptables": "0"},
		Components: components(c.Programs.Inside()),
		Grace:      grace,
	}, nil
}

func (c Config) write() error {
	id := c.Identities
	kubeconfig := func(p pki.Pair) []byte { return pki.Kubeconfig(Server, id.Cluster.Cert, p) }
	content := map[string][]byte{
		"pki/ca.crt":                    id.Cluster.Cert,
		"pki/ca.key":                    id.Cluster.Key,
		"pki/front-proxy-ca.crt":        id.FrontProxy.Cert,
		"pki/front-proxy.crt":           id.FrontProxyClient.Cert,
		"pki/front-proxy.key":           id.FrontProxyClient.Key,
		"pki/tokens.pub":                id.Tokens.Cert,
		"pki/tokens.key":                id.Tokens.Key,
		"pki/apiserver.crt":             id.APIServer.Cert,
		"pki/apiserver.key":             id.APIServer.Key,
		"pki/kubelet-client.crt":        id.KubeletClient.Cert,
		"pki/kubelet-client.key":        id.KubeletClient.Key,
		"controller-manager.kubeconfig": kubeconfig(id.ControllerManager),
		"scheduler.kubeconfig":          kubeconfig(id.Scheduler),
		"storage.kubeconfig":            kubeconfig(id.Storage),
	}
	for _, name := range []string{"audit-policy.yaml", "registry.yaml"} {
		data, err := files.ReadFile(name)
		if err != nil {
			return fmt.Errorf("cannot read %q: %w", name, err)
		}
		content[name] = data
	}
	return host.WriteFiles(c.Dir, content)
}

func components(programs build.Programs) []machine.Component {
	kubernetes := func(name string) string { return programs.Path("kubernetes", name) }
	in := func(file string) string { return filepath.Join(machine.Data, file) }
	return []machine.Component{
		{
			Name: "etcd", Path: programs.Path("etcd", "server"), Ready: "127.0.0.1:2379",
			Args: []string{
				"--data-dir=" + in("etcd"),
				"--listen-client-urls=http://127.0.0.1:2379",
				"--advertise-client-urls=http://127.0.0.1:2379",
				"--listen-peer-urls=http://127.0.0.1:2380",
				"--initial-advertise-peer-urls=http://127.0.0.1:2380",
				"--initial-cluster=default=http://127.0.0.1:2380",
				// The data does not outlive the cluster; a crash of the whole machine may lose it.
				"--unsafe-no-fsync",
			},
		},
		{
			Name: "registry", Path: programs.Path(host.Registry, "usr/bin/docker-registry"),
			Args: []string{"serve", in("registry.yaml")},
		},
		{
			Name: "apiserver", Path: kubernetes("kube-apiserver"), Ready: "https://127.0.0.1:6443/readyz",
			Args: []string{
				"--etcd-servers=http://127.0.0.1:2379",
				"--advertise-address=" + network.ControlPlane,
				"--secure-port=6443",
				"--service-cluster-ip-range=" + network.Services,
				"--authorization-mode=Node,RBAC",
				"--enable-admission-plugins=NodeRestriction",
				"--allow-privileged=true",
				"--client-ca-file=" + in("pki/ca.crt"),
				"--tls-cert-file=" + in("pki/apiserver.crt"),
				"--tls-private-key-file=" + in("pki/apiserver.key"),
				"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
				"--service-account-key-file=" + in("pki/tokens.pub"),
				"--service-account-signing-key-file=" + in("pki/tokens.key"),
				"--kubelet-certificate-authority=" + in("pki/ca.crt"),
				"--kubelet-client-certificate=" + in("pki/kubelet-client.crt"),
				"--kubelet-client-key=" + in("pki/kubelet-client.key"),
				// No program here can resolve the names of nodes.
				"--kubelet-preferred-address-types=InternalIP",
				"--requestheader-client-ca-file=" + in("pki/front-proxy-ca.crt"),
				"--requestheader-allowed-names=" + pki.FrontProxyUser,
				"--requestheader-extra-headers-prefix=X-Remote-Extra-",
				"--requestheader-group-headers=X-Remote-Group",
				"--requestheader-username-headers=X-Remote-User",
				"--proxy-client-cert-file=" + in("pki/front-proxy.crt"),
				"--proxy-client-key-file=" + in("pki/front-proxy.key"),
				// No kube-proxy runs here, so webhooks and aggregated API servers are called at their pods' addresses.
				"--enable-aggregator-routing=true",
				"--audit-policy-file=" + in("audit-policy.yaml"),
				"--audit-log-path=" + in(AuditLog),
				"--audit-log-maxsize=100",
				"--audit-log-maxbackup=5",
				"--profiling=false",
			},
		},
		{
			Name: "controller-manager", Path: kubernetes("kube-controller-manager"),
			Args: append(client("controller-manager"),
				"--root-ca-file="+in("pki/ca.crt"),
				"--cluster-signing-cert-file="+in("pki/ca.crt"),
				"--cluster-signing-key-file="+in("pki/ca.key"),
				"--service-account-private-key-file="+in("pki/tokens.key"),
				"--use-service-account-credentials=true",
			),
		},
		{Name: "scheduler", Path: kubernetes("kube-scheduler"), Args: client("scheduler")},
		// The controller of the class that grows knows no volume: it refers the resizer to the nodes, which do all of it.
		{
			Name: "xfsdriver", Path: programs.Path("xfsdriver", "xfsdriver"), Ready: xfs.Socket,
			Args: []string{"--endpoint=" + xfs.Socket},
		},
		{
			Name: "csi-resizer", Path: programs.Path("csi", "csi-resizer"),
			Args: []string{
				"--kubeconfig=" + in("storage.kubeconfig"),
				"--csi-address=" + xfs.Socket,
				// Volumes grow while they are used, which is what it would otherwise watch all pods for.
				"--handle-volume-inuse-error=false",
			},
		},
	}
}

// client returns the flags that the controllers of the control plane share. There is one of each, so none is elected.
func client(name string) []string {
	kubeconfig := filepath.Join(machine.Data, name+".kubeconfig")
	return strings.Fields(fmt.Sprintf("--kubeconfig=%[1]s --authentication-kubeconfig=%[1]s "+
		"--authorization-kubeconfig=%[1]s --leader-elect=false --bind-address=127.0.0.1 --profiling=false", kubeconfig))
}
