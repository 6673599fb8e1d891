// SPDX-License-Identifier: Apache-2.0

// Package node describes the machines that run pods.
package node

import (
	"bytes"
	"embed"
	"fmt"
	"path/filepath"
	"text/template"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/controlplane"
	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/network"
	"github.com/capstan-dev/capstan/hack/internal/pki"
	"github.com/capstan-dev/capstan/hack/internal/xfs"
)

const (
	// Volumes is the folder of a node below which local volumes are made.
	Volumes = "/var/lib/volumes"
	// PolicyPort is where the network policy enforcer of a node reports that it is well.
	PolicyPort = 20244
	// Pause is the image, in the registry, that holds the namespaces of a pod.
	Pause = "pause:1"

	// disks is the folder of a node that holds its volumes of the class that grows.
	disks = "/var/lib/disks"

	// grace is short: a node that is shut down goes for good. To be fair to pods, drain it first.
	grace = 5 * time.Second
)

//go:embed templates/*
var templates embed.FS

// Config is what one node needs to know.
type Config struct {
	// Name of the machine and of the Kubernetes node.
	Name string
	// Dir is the machine's data folder.
	Dir      string
	Network  network.Node
	Programs build.Programs
	// CNI is the folder with the CNI plugins.
	CNI string

	Authority  []byte
	Identity   pki.NodeIdentity
	KubeProxy  pki.Pair
	KubeRouter pki.Pair
	Storage    pki.Pair
}

// folders of the machine's data that appear where Kubernetes expects them, in memory-backed parents of the node's own, so
// that nodes neither share them nor leave anything behind.
var folders = []struct{ name, target string }{
	{"kubelet", "/var/lib/kubelet"},
	{"cni-leases", "/var/lib/cni"},
	{"volumes", Volumes},
	{"disks", disks},
	{"pod-logs", "/var/log/pods"},
	{"container-logs", "/var/log/containers"},
}

// kernel is what the kubelet wants of the kernel, below /proc/sys. These settings belong to the whole real machine, so the
// kubelet is shown files that say what it wants to read.
func kernel() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
}

// Prepare writes the node's files and returns its machine.
func Prepare(c Config) (machine.Spec, error) {
	content, err := c.files()
	if err != nil {
		return machine.Spec{}, err
	}
	if err := host.WriteFiles(c.Dir, content); err != nil {
		return machine.Spec{}, err
	}
	mounts := append(c.Programs.Mounts(), machine.Mount{Target: "/var/lib"}, machine.Mount{Target: "/var/log"})
	for _, f := range folders {
		dir := filepath.Join(c.Dir, f.name)
		if err := host.MakeFolder(dir); err != nil {
			return machine.Spec{}, err
		}
		mounts = append(mounts, machine.Mount{Source: dir, Target: f.target})
	}
	for name := range kernel() {
		mounts = append(mounts, machine.Mount{
			Source: filepath.Join(c.Dir, "kernel", name), Target: filepath.Join("/proc/sys", name),
		})
	}
	return machine.Spec{
		Name:   c.Name,
		Dir:    c.Dir,
		Mounts: mounts,
		// Traffic between pods of one node crosses a bridge; network policies and Services must see it.
		Sysctls:    map[string]string{"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1"},
		Components: c.components(),
		Grace:      grace,
	}, nil
}

func (c Config) files() (map[string][]byte, error) {
	kubeconfig := func(p pki.Pair) []byte { return pki.Kubeconfig(controlplane.Server, c.Authority, p) }
	content := map[string][]byte{
		"pki/ca.crt":             c.Authority,
		"pki/kubelet.crt":        c.Identity.Server.Cert,
		"pki/kubelet.key":        c.Identity.Server.Key,
		"kubelet.kubeconfig":     kubeconfig(c.Identity.Client),
		"kube-proxy.kubeconfig":  kubeconfig(c.KubeProxy),
		"kube-router.kubeconfig": kubeconfig(c.KubeRouter),
		"storage.kubeconfig":     kubeconfig(c.Storage),
		"resolv.conf":            []byte("nameserver " + network.DNS + "\n"),
	}
	for name, value := range kernel() {
		content["kernel/"+name] = []byte(value + "\n")
	}
	values := map[string]any{
		"Data":            machine.Data,
		"Name":            c.Name,
		"PodCIDR":         c.Network.Pods,
		"DNS":             network.DNS,
		"CNI":             c.CNI,
		"Runc":            c.Programs.Inside().Path("runc", "runc"),
		"RegistryAddress": controlplane.RegistryAddress,
		"Pause":           controlplane.RegistryName + "/" + Pause,
	}
	for file, name := range map[string]string{
		"containerd.toml":        "containerd.toml",
		"kubelet.yaml":           "kubelet.yaml",
		"cni/10-bridge.conflist": "bridge.conflist",
		"registries/" + controlplane.RegistryName + "/hosts.toml": "hosts.toml",
	} {
		data, err := render(name, values)
		if err != nil {
			return nil, err
		}
		content[file] = data
	}
	return content, nil
}

func (c Config) components() []machine.Component {
	programs := c.Programs.Inside()
	in := func(file string) string { return filepath.Join(machine.Data, file) }
	return []machine.Component{
		{
			Name: "containerd", Path: programs.Path("containerd", "containerd"), Ready: "/run/containerd/containerd.sock",
			Args: []string{"--config=" + in("containerd.toml")},
			// It looks for its shim in PATH.
			Env: []string{"PATH=" + programs.Dir("containerd") + ":" + machine.Path},
		},
		{
			Name: "kubelet", Path: programs.Path("kubernetes", "kubelet"),
			Args: []string{
				"--config=" + in("kubelet.yaml"),
				"--kubeconfig=" + in("kubelet.kubeconfig"),
				"--hostname-override=" + c.Name,
				"--node-ip=" + c.Network.Address.String(),
				"--node-labels=topology.kubernetes.io/zone=" + c.Network.Letter,
			},
		},
		{
			Name: "kube-proxy", Path: programs.Path("kubernetes", "kube-proxy"),
			Args: []string{
				"--kubeconfig=" + in("kube-proxy.kubeconfig"),
				"--hostname-override=" + c.Name,
				"--proxy-mode=iptables",
				"--cluster-cidr=" + network.Pods,
				// The limits of connection tracking belong to the whole machine and may not be ours to set.
				"--conntrack-max-per-core=0",
				"--conntrack-min=0",
				"--conntrack-tcp-timeout-established=0",
				"--conntrack-tcp-timeout-close-wait=0",
			},
		},
		{
			Name: "kube-router", Path: programs.Path("kube-router", "kube-router"),
			Args: []string{
				"--kubeconfig=" + in("kube-router.kubeconfig"),
				"--hostname-override=" + c.Name,
				"--run-firewall=true",
				"--run-router=false",
				"--run-service-proxy=false",
				"--run-loadbalancer=false",
				"--service-cluster-ip-range=" + network.Services,
				fmt.Sprintf("--health-port=%d", PolicyPort),
				"--metrics-port=0",
			},
			Env: []string{"NODE_NAME=" + c.Name},
		},
		{
			Name: "xfsdriver", Path: programs.Path("xfsdriver", "xfsdriver"), Ready: xfs.Socket,
			Args: []string{
				"--endpoint=" + xfs.Socket,
				"--node=" + c.Name,
				"--folder=" + disks,
				"--register=/var/lib/kubelet/plugins_registry/" + xfs.Driver + "-reg.sock",
			},
		},
		{
			// A volume is made on the node that the first pod was scheduled to, so that each node has a provisioner.
			Name: "csi-provisioner", Path: programs.Path("csi", "csi-provisioner"),
			Args: []string{
				"--kubeconfig=" + in("storage.kubeconfig"),
				"--csi-address=" + xfs.Socket,
				"--node-deployment",
				"--node-deployment-immediate-binding=false",
				"--strict-topology",
				"--immediate-topology=false",
				"--default-fstype=xfs",
			},
			Env: []string{"NODE_NAME=" + c.Name},
		},
	}
}

func render(name string, values any) ([]byte, error) {
	tmpl, err := template.New(name).Option("missingkey=error").ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, fmt.Errorf("cannot parse template %q: %w", name, err)
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("cannot render template %q: %w", name, err)
	}
	return out.Bytes(), nil
}
