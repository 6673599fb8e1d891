// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/network"
)

func TestFiles(t *testing.T) {
	plan, err := network.Plan(2)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Config{Name: "capstan-b", Network: plan[1], CNI: "/usr/lib/cni"}.files()
	if err != nil {
		t.Fatal(err)
	}

	var kubelet struct {
		CgroupRoot     string   `json:"cgroupRoot"`
		ClusterDNS     []string `json:"clusterDNS"`
		Authentication struct {
			Anonymous struct {
				Enabled bool `json:"enabled"`
			} `json:"anonymous"`
			Webhook struct {
				Enabled bool `json:"enabled"`
			} `json:"webhook"`
		} `json:"authentication"`
		Authorization struct {
			Mode string `json:"mode"`
		} `json:"authorization"`
	}
	if err := yaml.Unmarshal(files["kubelet.yaml"], &kubelet); err != nil {
		t.Fatal(err)
	}
	if kubelet.CgroupRoot != "/capstan-b" {
		t.Errorf("pods of all nodes would share control group %q", kubelet.CgroupRoot)
	}
	if kubelet.Authentication.Anonymous.Enabled || !kubelet.Authentication.Webhook.Enabled ||
		kubelet.Authorization.Mode != "Webhook" {
		t.Error("the kubelet lets anybody in")
	}
	if diff := cmp.Diff([]string{network.DNS}, kubelet.ClusterDNS); diff != "" {
		t.Errorf("pods ask the wrong server for names: -want, +got:\n%s", diff)
	}

	var cni struct {
		Plugins []struct {
			IPAM struct {
				Ranges [][]struct {
					Subnet string `json:"subnet"`
				} `json:"ranges"`
			} `json:"ipam"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal(files["cni/10-bridge.conflist"], &cni); err != nil {
		t.Fatal(err)
	}
	if got := cni.Plugins[0].IPAM.Ranges[0][0].Subnet; got != plan[1].Pods.String() {
		t.Errorf("pods get addresses of %s, but routes lead to %s", got, plan[1].Pods)
	}
	if got := string(files["containerd.toml"]); !strings.Contains(got, `bin_dirs = ["/usr/lib/cni"]`) {
		t.Errorf("containerd 2 does not find the plugins:\n%s", got)
	}
}

func TestPrepareHidesTheMachine(t *testing.T) {
	plan, err := network.Plan(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	spec, err := Prepare(Config{Name: "capstan-a", Dir: dir, Network: plan[0]})
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{}
	for _, m := range spec.Mounts {
		targets[m.Target] = m.Source
	}
	for _, path := range []string{
		"/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers", "/proc/sys/kernel/panic",
	} {
		if source := targets[path]; !strings.HasPrefix(source, dir+string(filepath.Separator)) {
			t.Errorf("%s is that of the real machine, and of every other node", path)
		}
	}
	names := make([]string, 0, len(spec.Components))
	for _, c := range spec.Components {
		names = append(names, c.Name)
		if !strings.HasPrefix(c.Path, "/run/") || strings.Contains(strings.Join(c.Args, " "), dir) {
			t.Errorf("%s uses paths that the node does not see: %s %s", c.Name, c.Path, c.Args)
		}
	}
	if diff := cmp.Diff([]string{"containerd", "kubelet", "kube-proxy", "kube-router", "xfsdriver", "csi-provisioner"}, names); diff != "" {
		t.Errorf("the kubelet comes after the runtime it needs: -want, +got:\n%s", diff)
	}
	if spec.Components[0].Ready != "/run/containerd/containerd.sock" || machine.Data != "/run/capstan" {
		t.Error("the kubelet does not wait for containerd")
	}
}
