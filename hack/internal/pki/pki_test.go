// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIdentities(t *testing.T) {
	id, err := NewIdentities([]string{"kubernetes.default.svc"}, []string{"198.18.3.1"})
	if err != nil {
		t.Fatal(err)
	}
	node, err := id.Node("capstan-a", "198.18.3.11")
	if err != nil {
		t.Fatal(err)
	}

	named, err := id.Cluster.Issue(Request{User: "crossplane", Names: []string{"crossplane.crossplane-system"}, Client: true})
	if err != nil {
		t.Fatal(err)
	}

	type want struct {
		User   string
		Groups []string
		Usage  x509.ExtKeyUsage
		Host   string
	}
	cases := map[string]struct {
		reason string
		pair   Pair
		by     *Authority
		want   want
	}{
		"APIServer": {
			reason: "Clients reach the API server by address and verify it.",
			pair:   id.APIServer, by: id.Cluster,
			want: want{User: "kube-apiserver", Usage: x509.ExtKeyUsageServerAuth, Host: "198.18.3.1"},
		},
		"APIServerByName": {
			reason: "Pods reach the API server through its Service.",
			pair:   id.APIServer, by: id.Cluster,
			want: want{User: "kube-apiserver", Usage: x509.ExtKeyUsageServerAuth, Host: "kubernetes.default.svc"},
		},
		"Admin": {
			reason: "The administrator may do everything by group, without any binding.",
			pair:   id.Admin, by: id.Cluster,
			want: want{User: "capstan:admin", Groups: []string{"system:masters"}, Usage: x509.ExtKeyUsageClientAuth},
		},
		"Kubelet": {
			reason: "The node authorizer knows nodes by this form of user and group only.",
			pair:   node.Client, by: id.Cluster,
			want: want{User: "system:node:capstan-a", Groups: []string{"system:nodes"}, Usage: x509.ExtKeyUsageClientAuth},
		},
		"KubeletServer": {
			reason: "The API server and metrics-server call kubelets by address and verify them.",
			pair:   node.Server, by: id.Cluster,
			want: want{
				User: "system:node:capstan-a", Groups: []string{"system:nodes"},
				Usage: x509.ExtKeyUsageServerAuth, Host: "198.18.3.11",
			},
		},
		"NamedClient": {
			reason: "Functions know Crossplane by the name in its client certificate.",
			pair:   named, by: id.Cluster,
			want: want{User: "crossplane", Usage: x509.ExtKeyUsageClientAuth, Host: "crossplane.crossplane-system"},
		},
		"FrontProxy": {
			reason: "Who may speak for others is signed by an authority of its own.",
			pair:   id.FrontProxyClient, by: id.FrontProxy,
			want: want{User: FrontProxyUser, Usage: x509.ExtKeyUsageClientAuth},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pair, err := tls.X509KeyPair(tc.pair.Cert, tc.pair.Key)
			if err != nil {
				t.Fatalf("%s\nX509KeyPair: %v", tc.reason, err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(tc.by.Cert)
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{
				Roots: roots, DNSName: tc.want.Host, KeyUsages: []x509.ExtKeyUsage{tc.want.Usage},
			}); err != nil {
				t.Errorf("%s\nVerify: %v", tc.reason, err)
			}
			got := want{
				User: pair.Leaf.Subject.CommonName, Groups: pair.Leaf.Subject.Organization,
				Usage: pair.Leaf.ExtKeyUsage[0], Host: tc.want.Host,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFrontProxyIsNoClientOfTheCluster(t *testing.T) {
	id, err := NewIdentities(nil, []string{"198.18.3.1"})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(id.FrontProxyClient.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(id.Cluster.Cert)
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: usage}); err == nil {
		t.Error("the cluster's authority vouches for the front proxy, who could then be any user")
	}
}

func TestIssueRefusesNames(t *testing.T) {
	ca, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = ca.Issue(Request{User: "x", Addresses: []string{"capstan-a"}})
	if err == nil || !strings.Contains(err.Error(), `"capstan-a" is not an IP address`) {
		t.Errorf("a name is not an address: got %v", err)
	}
}
