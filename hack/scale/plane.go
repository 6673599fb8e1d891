// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/cluster"
	"github.com/capstan-dev/capstan/hack/internal/controlplane"
	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/network"
	"github.com/capstan-dev/capstan/hack/internal/pki"

	_ "embed"
)

//go:embed stages.yaml
var stages []byte

// Users of the components, as the audit log names them.
const (
	userCore     = "system:serviceaccount:crossplane-system:crossplane"
	userProvider = "system:serviceaccount:crossplane-system:provider-capstan"
	userKwok     = "capstan:kwok"
)

// Addresses inside the machine.
const (
	functionAddress = "127.0.0.1:9443"
	coreMetrics     = "127.0.0.1:18080"
	providerMetrics = "127.0.0.1:18082"
	prometheus      = "127.0.0.1:9090"
	s3Address       = "127.0.0.1:9000"
	delayed         = network.ControlPlane + ":6444"
)

// s3Root is the account of the S3 server, and its password. Nothing outside of the machine reaches it.
const s3Root = "capstan-scale"

// A plane is what runs beside the API server.
type plane struct {
	// root of the repository, whose function and provider run.
	root string
	// late is how much later answers of the API server reach core and provider.
	late time.Duration
	// s3 is whether there is an S3 server for Buckets.
	s3 bool
	// coreMemory is the memory of core in MiB.
	coreMemory int
	// flags of core and provider.
	coreFlags, providerFlags []string
}

// tools of the plane, beside etcd and Kubernetes.
func (p plane) tools() []string {
	all := []string{"crossplane", "kwok", "prometheus"}
	if p.s3 {
		all = append(all, "versitygw")
	}
	return all
}

// components of the plane, with all files that they read. Where a package limits the memory, Go's collector has the same bound.
func (p plane) components(ctx context.Context, b cluster.Bare) ([]machine.Component, error) {
	if err := p.programs(ctx, filepath.Join(b.Dir, "bin")); err != nil {
		return nil, err
	}
	if err := p.files(b); err != nil {
		return nil, err
	}
	in := func(file string) string { return filepath.Join(machine.Data, file) }
	programs := b.Programs.Inside()
	all := []machine.Component{
		{Name: kwok, Path: programs.Path("kwok", "kwok"), Args: []string{
			"--kubeconfig=" + in("kwok.kubeconfig"), "--config=" + in("stages.yaml"), "--manage-nodes-with-label-selector=capstan.dev/none=here",
		}},
		{Name: "prometheus", Path: programs.Path("prometheus", "prometheus"), Ready: prometheus, Args: []string{
			"--config.file=" + in("prometheus.yaml"), "--storage.tsdb.path=" + in("prometheus"), "--web.listen-address=" + prometheus,
		}},
		{
			Name: function, Path: in("bin/function"), Ready: functionAddress, Env: []string{"GOMEMLIMIT=200MiB"}, Args: []string{
				"--address=" + functionAddress, "--tls-certs-dir=" + in("tls/function"),
				"--health-address=127.0.0.1:18085", "--metrics-address=127.0.0.1:18084",
			},
		},
		{
			Name: core, Path: programs.Path("crossplane", "crossplane"),
			Env: []string{"KUBECONFIG=" + in("core.kubeconfig"), fmt.Sprintf("GOMEMLIMIT=%dMiB", p.coreMemory)},
			Args: append([]string{
				"core", "start", "--namespace=crossplane-system", "--webhook-enabled=false", "--metrics-port=18080", "--health-probe-port=18081",
				"--cache-dir=" + in("cache"), "--tls-client-certs-dir=" + in("tls/core"),
			}, p.coreFlags...),
		},
		{
			Name: provider, Path: in("bin/provider"),
			Env: []string{"KUBECONFIG=" + in("provider.kubeconfig"), "GOMEMLIMIT=230MiB"},
			// Outside of a pod nothing says in which namespace its Lease would be.
			Args: append([]string{"--no-leader-election", "--metrics-address=" + providerMetrics, "--health-address=127.0.0.1:18083", "--events-address="}, p.providerFlags...),
		},
	}
	if p.s3 {
		server := machine.Component{
			Name: "s3", Path: programs.Path("versitygw", "versitygw"), Ready: s3Address,
			Env: []string{"ROOT_ACCESS_KEY_ID=" + s3Root, "ROOT_SECRET_ACCESS_KEY=" + s3Root},
			Args: []string{
				"--port=" + s3Address, "--cert=" + in("tls/s3/tls.crt"), "--key=" + in("tls/s3/tls.key"), "--region=us-east-1",
				"--iam-dir=" + in("s3/accounts"), "--quiet", "posix", "--versioning-dir=" + in("s3/versions"), in("s3/buckets"),
			},
		}
		all = append([]machine.Component{server}, all...)
	}
	if p.late > 0 {
		delay := machine.Component{Name: "delay", Path: in("bin/scale"), Ready: delayed, Args: []string{
			"delay", "--listen=" + delayed, "--to=" + network.ControlPlane + ":6443", "--by=" + p.late.String(),
		}}
		all = append([]machine.Component{delay}, all...)
	}
	return all, nil
}

// programs of this tree, and this one.
func (p plane) programs(ctx context.Context, to string) error {
	if err := os.MkdirAll(to, 0o750); err != nil {
		return fmt.Errorf("cannot make a folder for programs: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w -X main.version=v0.0.0",
		"-o", to, "./function", "./provider")
	build.Dir, build.Env = p.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build function and provider: %w: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("cannot copy this program: %w", err)
	}
	if err := os.WriteFile(filepath.Join(to, "scale"), data, 0o700); err != nil {
		return fmt.Errorf("cannot copy this program: %w", err)
	}
	return nil
}

func (p plane) files(b cluster.Bare) error {
	files := map[string][]byte{
		"stages.yaml":     stages,
		"prometheus.yaml": []byte("{}\n"),
		"cache/README":    []byte("Packages that Crossplane has downloaded: none.\n"),
	}
	server := controlplane.Server
	if p.late > 0 {
		server = "https://" + delayed
	}
	authority := b.Identities.Cluster
	for name, user := range map[string]string{core: userCore, provider: userProvider, kwok: userKwok} {
		req := pki.Request{User: user}
		if name != kwok {
			// The API server gives clients their share by these groups, as in a cluster.
			req.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:crossplane-system"}
		}
		pair, err := authority.Issue(req)
		if err != nil {
			return err
		}
		to := server
		if name == kwok {
			to = controlplane.Server // It stands for others, who are not slow.
		}
		files[name+".kubeconfig"] = pki.Kubeconfig(to, authority.Cert, pair)
	}
	for _, folder := range []string{"accounts", "versions", "buckets"} {
		if err := host.MakeFolder(filepath.Join(b.Dir, "s3", folder)); err != nil {
			return err
		}
	}
	for name, req := range map[string]pki.Request{
		"s3":     {User: "s3", Addresses: []string{"127.0.0.1"}},
		function: {User: function, Addresses: []string{"127.0.0.1"}},
		core:     {User: core, Names: []string{"crossplane.crossplane-system"}, Client: true},
	} {
		pair, err := authority.Issue(req)
		if err != nil {
			return err
		}
		files["tls/"+name+"/ca.crt"], files["tls/"+name+"/tls.crt"], files["tls/"+name+"/tls.key"] = authority.Cert, pair.Cert, pair.Key
	}
	return host.WriteFiles(b.Dir, files)
}
