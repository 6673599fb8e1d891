// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access"
	"github.com/capstan-dev/capstan/provider/analysis"
	"github.com/capstan-dev/capstan/provider/autoscaler"
	"github.com/capstan-dev/capstan/provider/bucket"
	"github.com/capstan-dev/capstan/provider/credential"
	"github.com/capstan-dev/capstan/provider/flinkjob"
	"github.com/capstan-dev/capstan/provider/hook"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/openlineage"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/s3"
	"github.com/capstan-dev/capstan/provider/internal/signals"
	"github.com/capstan-dev/capstan/provider/jobhistory"
	"github.com/capstan-dev/capstan/provider/lineage"
	"github.com/capstan-dev/capstan/provider/modelalias"
	"github.com/capstan-dev/capstan/provider/modelversion"
	"github.com/capstan-dev/capstan/provider/providerconfig"
	"github.com/capstan-dev/capstan/provider/receiver"
	"github.com/capstan-dev/capstan/provider/registeredmodel"
	"github.com/capstan-dev/capstan/provider/run"
	"github.com/capstan-dev/capstan/provider/signal"
	"github.com/capstan-dev/capstan/provider/topology"
	"github.com/capstan-dev/capstan/provider/volumeclaim"
)

// guard of the connections that tenants make the provider open.
func (c *CLI) guard(mgr ctrl.Manager) (*outside.Guard, error) {
	allowed, err := c.allowed()
	if err != nil {
		return nil, err
	}
	return &outside.Guard{
		Allowed:   allowed,
		Hosts:     c.AllowTenantHost,
		Services:  services(mgr.GetAPIReader()),
		APIServer: apiServer(mgr.GetAPIReader(), mgr.GetConfig()),
	}, nil
}

// kinds that this provider reconciles, each as soon as its CRD exists.
func kinds(r *outside.Resolver, guard *outside.Guard, board *signals.Board, receives bool) map[schema.GroupVersionKind]setup {
	buckets := outside.NewPool(r, outside.S3, s3.Service())
	models := outside.NewPool(r, outside.MLflow, mlflow.Service())
	metrics := outside.NewPool(r, outside.Prometheus, prometheus.Service())
	events := outside.NewPool(r, outside.OpenLineage, openlineage.Service())
	return map[schema.GroupVersionKind]setup{
		accessv1alpha1.AccessGroupVersionKind:            access.Setup(guard),
		credentialsv1alpha1.CredentialGroupVersionKind:   credential.Setup,
		eventsv1alpha1.ReceiverGroupVersionKind:          receiver.Setup(receives),
		eventsv1alpha1.SignalGroupVersionKind:            signal.Setup(board),
		observev1alpha1.AnalysisGroupVersionKind:         analysis.Setup(metrics, board),
		observev1alpha1.AutoscalerGroupVersionKind:       autoscaler.Setup,
		observev1alpha1.FlinkJobGroupVersionKind:         flinkjob.Setup(guard),
		observev1alpha1.HookGroupVersionKind:             hook.Setup(guard),
		observev1alpha1.JobHistoryGroupVersionKind:       jobhistory.Setup(guard),
		observev1alpha1.LineageGroupVersionKind:          lineage.Setup(events),
		observev1alpha1.RunGroupVersionKind:              run.Setup(guard),
		observev1alpha1.TopologyGroupVersionKind:         topology.Setup(board),
		registryv1alpha1.ModelAliasGroupVersionKind:      modelalias.Setup(models),
		registryv1alpha1.ModelVersionGroupVersionKind:    modelversion.Setup(models),
		registryv1alpha1.RegisteredModelGroupVersionKind: registeredmodel.Setup(models),
		storagev1alpha1.BucketGroupVersionKind:           bucket.Setup(buckets),
		storagev1alpha1.VolumeClaimGroupVersionKind:      volumeclaim.Setup,
		v1alpha1.ProviderConfigGroupVersionKind: providerconfig.Setup(
			v1alpha1.ProviderConfigGroupVersionKind, buckets, models, metrics, events),
		v1alpha1.ClusterProviderConfigGroupVersionKind: providerconfig.Setup(
			v1alpha1.ClusterProviderConfigGroupVersionKind, buckets, models, metrics, events),
	}
}

// services returns a function that finds the addresses that Kubernetes gave a Service. Addresses of its pods are not among them,
// because users who may edit the endpoints of a Service can write others there.
func services(kube client.Reader) func(context.Context, string, string) ([]netip.Addr, error) {
	return func(ctx context.Context, namespace, name string) ([]netip.Addr, error) {
		s := &corev1.Service{}
		if err := kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, s); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		if s.Spec.Type == corev1.ServiceTypeExternalName {
			return nil, nil
		}
		var all []netip.Addr
		for _, ip := range s.Spec.ClusterIPs {
			if a, err := netip.ParseAddr(ip); err == nil { // None is no address
				all = append(all, a)
			}
		}
		return all, nil
	}
}

// apiServer returns a function that finds the addresses of the API server: the one that this process uses, the Service that every
// pod knows, and its endpoints.
func apiServer(kube client.Reader, cfg *rest.Config) func(context.Context) ([]netip.Addr, error) {
	return func(ctx context.Context) ([]netip.Addr, error) {
		hosts := []string{os.Getenv("KUBERNETES_SERVICE_HOST")}
		if u, err := url.Parse(cfg.Host); err == nil && u.Hostname() != "" {
			hosts = append(hosts, u.Hostname())
		} else if host, _, err := net.SplitHostPort(cfg.Host); err == nil {
			hosts = append(hosts, host)
		}
		s := &discoveryv1.EndpointSlice{}
		if err := kube.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, s); err != nil {
			return nil, fmt.Errorf("cannot get the endpoints of the API server: %w", err)
		}
		for _, e := range s.Endpoints {
			hosts = append(hosts, e.Addresses...)
		}
		return addresses(ctx, hosts), nil
	}
}

// addresses of hosts. One that has no address cannot be reached either.
func addresses(ctx context.Context, hosts []string) []netip.Addr {
	var all []netip.Addr
	for _, h := range hosts {
		if h == "" {
			continue
		}
		if found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", h); err == nil {
			all = append(all, found...)
		}
	}
	return all
}
