// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	runtimemeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/test/outside"
)

// A field is a text field of a managed resource or a config, from the view of an attacker.
type field struct {
	// attack it, from namespace bank, where shop and the platform are the victims.
	attack func(*testing.T, *stage)

	// harmless explains why there is nothing to attack.
	harmless string
}

// Reasons that many fields share.
const (
	platformOnly  = "Only the platform team writes this kind, and its reach is theirs."
	ownBucket     = "It describes the tenant's own bucket, and goes nowhere but to the S3 server as data."
	ownEntry      = "It describes the tenant's own entry, and goes to the registry as data in JSON."
	ownSecret     = "It becomes content of the tenant's own Secret."
	closedSet     = "The schema allows a closed set of values."
	ownServer     = "It is quoted and goes to a server of the tenant's own namespace, where the provider is no superuser."
	ownVolumes    = "It selects among the volume claims of Databases of its own namespace, whose quota bounds what they may grow to."
	ownCredential = "It is read in the tenant's own namespace, and sent only if the Secret is of a Credential, whose values are for servers."
	countsNodes   = "It selects among nodes, of which only the number and the zones are told. A pod with it would tell as much."
	anyDataset    = "It is data for the server, and the schema bounds it. A tenant may name any dataset, as with a client of its own: the job says whose words it is."
	ownNamespace  = "It is read in the tenant's own namespace, and nothing of it is told."
)

// fields are all text fields of specs, and the annotation with the external name. A new one without an entry fails the
// test.
func fields() map[string]field {
	return map[string]field{
		"ClusterProviderConfig.spec.allowedNamespaces[]":                           {harmless: platformOnly},
		"ClusterProviderConfig.spec.mlflow.allowedSources[]":                       {harmless: platformOnly},
		"ClusterProviderConfig.spec.mlflow.caBundle":                               {harmless: platformOnly},
		"ClusterProviderConfig.spec.mlflow.credentials.basic.secretRef.name":       {harmless: platformOnly},
		"ClusterProviderConfig.spec.mlflow.credentials.bearer.secretRef.name":      {harmless: platformOnly},
		"ClusterProviderConfig.spec.mlflow.url":                                    {harmless: platformOnly},
		"ClusterProviderConfig.spec.openLineage.caBundle":                          {harmless: platformOnly},
		"ClusterProviderConfig.spec.openLineage.credentials.basic.secretRef.name":  {harmless: platformOnly},
		"ClusterProviderConfig.spec.openLineage.credentials.bearer.secretRef.name": {harmless: platformOnly},
		"ClusterProviderConfig.spec.openLineage.jobNamespace":                      {harmless: platformOnly},
		"ClusterProviderConfig.spec.openLineage.url":                               {harmless: platformOnly},
		"ClusterProviderConfig.spec.prometheus.caBundle":                           {harmless: platformOnly},
		"ClusterProviderConfig.spec.prometheus.credentials.basic.secretRef.name":   {harmless: platformOnly},
		"ClusterProviderConfig.spec.prometheus.credentials.bearer.secretRef.name":  {harmless: platformOnly},
		"ClusterProviderConfig.spec.prometheus.url":                                {harmless: platformOnly},
		"ClusterProviderConfig.spec.retry.baseDelay":                               {harmless: platformOnly},
		"ClusterProviderConfig.spec.retry.maxDelay":                                {harmless: platformOnly},
		"ClusterProviderConfig.spec.s3.bucketPrefix":                               {harmless: platformOnly},
		"ClusterProviderConfig.spec.s3.caBundle":                                   {harmless: platformOnly},
		"ClusterProviderConfig.spec.s3.credentials.secretRef.name":                 {harmless: platformOnly},
		"ClusterProviderConfig.spec.s3.endpoint":                                   {harmless: platformOnly},
		"ClusterProviderConfig.spec.s3.region":                                     {harmless: platformOnly},
		"ClusterProviderConfig.spec.s3.workloadCredentials.secretRef.name":         {harmless: platformOnly},
		"ClusterProviderConfig.spec.secretsNamespace":                              {harmless: platformOnly},

		"ProviderConfig.spec.s3.endpoint":     {attack: urls(s3At)},
		"ProviderConfig.spec.mlflow.url":      {attack: urls(mlflowAt)},
		"ProviderConfig.spec.prometheus.url":  {attack: urls(prometheusAt)},
		"ProviderConfig.spec.openLineage.url": {attack: urls(openLineageAt)},

		"ProviderConfig.spec.s3.credentials.secretRef.name": {attack: secrets(func(name string) v1alpha1.ProviderConfigSpec {
			s := s3At("https://203.0.113.1")
			s.S3.Credentials.SecretRef.Name = name

			return s
		})},
		"ProviderConfig.spec.s3.workloadCredentials.secretRef.name": {attack: secrets(func(name string) v1alpha1.ProviderConfigSpec {
			s := s3At("https://203.0.113.1")
			s.S3.WorkloadCredentials = &v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: name}}

			return s
		})},
		"ProviderConfig.spec.mlflow.credentials.basic.secretRef.name": {attack: secrets(func(name string) v1alpha1.ProviderConfigSpec {
			s := mlflowAt("https://203.0.113.1")
			s.MLflow.Credentials = basic(name)

			return s
		})},
		"ProviderConfig.spec.mlflow.credentials.bearer.secretRef.name": {attack: secrets(func(name string) v1alpha1.ProviderConfigSpec {
			s := mlflowAt("https://203.0.113.1")
			s.MLflow.Credentials = bearer(name)

			return s
		})},
		"ProviderConfig.spec.prometheus.credentials.basic.secretRef.name": {attack: secrets(func(name string) v1alpha1.ProviderConfigSpec {
			s := prometheusAt("https://203.0.113.1")
			s.Prometheus.Credentials = basic(name)

			return s
		})},
		"ProviderConfig.spec.prometheus.credentials.bearer.secretRef.name": {attack: secrets(func(name string) v1alpha1.ProviderConfigSpec {
			s := prometheusAt("https://203.0.113.1")
			s.Prometheus.Credentials = bearer(name)

			return s
		})},
		"ProviderConfig.spec.openLineage.credentials.basic.secretRef.name": {attack: secrets(func(name string) v1alpha1.ProviderConfigSpec {
			s := openLineageAt("https://203.0.113.1")
			s.OpenLineage.Credentials = basic(name)

			return s
		})},
		"ProviderConfig.spec.openLineage.credentials.bearer.secretRef.name": {attack: secrets(func(name string) v1alpha1.ProviderConfigSpec {
			s := openLineageAt("https://203.0.113.1")
			s.OpenLineage.Credentials = bearer(name)

			return s
		})},
		"ProviderConfig.spec.openLineage.caBundle":     {harmless: "It is for connections with the tenant's own server."},
		"ProviderConfig.spec.openLineage.jobNamespace": {harmless: "It is data for the tenant's own server."},
		"ProviderConfig.spec.mlflow.allowedSources[]":  {harmless: "It narrows what the tenant's own versions may name."},
		"ProviderConfig.spec.mlflow.caBundle":          {harmless: "It is for connections with the tenant's own server."},
		"ProviderConfig.spec.prometheus.caBundle":      {harmless: "It is for connections with the tenant's own server."},
		"ProviderConfig.spec.s3.caBundle":              {harmless: "It is for connections with the tenant's own server."},
		"ProviderConfig.spec.s3.region":                {attack: regions},
		"ProviderConfig.spec.retry.baseDelay":          {harmless: "The schema bounds it, and it paces only the tenant's own objects."},
		"ProviderConfig.spec.retry.maxDelay":           {harmless: "The schema bounds it, and it paces only the tenant's own objects."},

		"Autoscaler.metadata.annotations[crossplane.io/external-name]": {harmless: "An Autoscaler has nothing outside."},
		"Bucket.metadata.annotations[crossplane.io/external-name]":     {attack: othersBucket},
		"Bucket.spec.providerConfigRef.kind":                           {attack: kindsOfConfig},
		"Bucket.spec.providerConfigRef.name":                           {attack: othersConfig},
		"Bucket.spec.writeConnectionSecretToRef.name":                  {attack: someonesSecret},
		"Bucket.spec.forProvider.region":                               {attack: bucketRegions},
		"Bucket.spec.forProvider.policy":                               {harmless: ownBucket + " The server checks that it is about this bucket."},
		"Bucket.spec.forProvider.tags{}":                               {attack: ownerTag},
		"Bucket.spec.forProvider.corsRules[].allowedHeaders[]":         {harmless: ownBucket},
		"Bucket.spec.forProvider.corsRules[].allowedOrigins[]":         {harmless: ownBucket},
		"Bucket.spec.forProvider.corsRules[].exposeHeaders[]":          {harmless: ownBucket},
		"Bucket.spec.forProvider.encryption.kmsKeyId":                  {harmless: ownBucket + " The key service decides who may use a key."},
		"Bucket.spec.forProvider.lifecycleRules[].id":                  {harmless: ownBucket},
		"Bucket.spec.forProvider.lifecycleRules[].prefix":              {harmless: ownBucket},
		"Bucket.spec.forProvider.lifecycleRules[].tags{}":              {harmless: ownBucket},

		"RegisteredModel.metadata.annotations[crossplane.io/external-name]": {attack: othersModel},
		"RegisteredModel.spec.providerConfigRef.kind":                       {attack: kindsOfConfig},
		"RegisteredModel.spec.providerConfigRef.name":                       {attack: othersConfig},
		"RegisteredModel.spec.forProvider.description":                      {harmless: ownEntry},
		"RegisteredModel.spec.forProvider.tags{}":                           {attack: ownerTagOfModel},

		"ModelVersion.metadata.annotations[crossplane.io/external-name]": {attack: othersVersion},
		"ModelVersion.spec.providerConfigRef.kind":                       {attack: kindsOfConfig},
		"ModelVersion.spec.providerConfigRef.name":                       {attack: othersConfig},
		"ModelVersion.spec.forProvider.model":                            {attack: versionOfOthersModel},
		"ModelVersion.spec.forProvider.source":                           {attack: sources},
		"ModelVersion.spec.forProvider.runId":                            {harmless: ownEntry + " The schema allows the characters of IDs only."},
		"ModelVersion.spec.forProvider.version":                          {attack: observeOthersModel},
		"ModelVersion.spec.forProvider.alias":                            {attack: observeOthersModel},
		"ModelVersion.spec.forProvider.description":                      {harmless: ownEntry},
		"ModelVersion.spec.forProvider.tags{}":                           {attack: ownerTagOfModel},

		"ModelAlias.metadata.annotations[crossplane.io/external-name]": {harmless: "Model and alias are fields of the spec."},
		"ModelAlias.spec.providerConfigRef.kind":                       {attack: kindsOfConfig},
		"ModelAlias.spec.providerConfigRef.name":                       {attack: othersConfig},
		"ModelAlias.spec.forProvider.model":                            {attack: aliasOfOthersModel},
		"ModelAlias.spec.forProvider.alias":                            {harmless: ownEntry + " The schema allows letters, digits, _ and - only."},
		"ModelAlias.spec.forProvider.version":                          {harmless: ownEntry + " The schema allows digits only."},
		"ModelAlias.spec.forProvider.evidence{}":                       {attack: evidenceOfOthers},

		"Credential.metadata.annotations[crossplane.io/external-name]":       {attack: someonesCredential},
		"Credential.spec.forProvider.connection.alternateUsername":           {harmless: ownSecret},
		"Credential.spec.forProvider.connection.caFrom.configMapKeyRef.key":  {harmless: ownSecret},
		"Credential.spec.forProvider.connection.caFrom.configMapKeyRef.name": {attack: othersCA},
		"Credential.spec.forProvider.connection.caFrom.secretKeyRef.key":     {harmless: ownSecret},
		"Credential.spec.forProvider.connection.caFrom.secretKeyRef.name":    {attack: othersCA},
		"Credential.spec.forProvider.connection.database":                    {harmless: ownSecret},
		"Credential.spec.forProvider.connection.endpoints[].host":            {harmless: ownSecret + " The provider does not connect to it."},
		"Credential.spec.forProvider.connection.endpoints[].name":            {harmless: ownSecret},
		"Credential.spec.forProvider.connection.host":                        {harmless: ownSecret + " The provider does not connect to it."},
		"Credential.spec.forProvider.connection.hosts[].host":                {harmless: ownSecret + " The provider does not connect to it."},
		"Credential.spec.forProvider.connection.jdbcOptions{}":               {harmless: ownSecret},
		"Credential.spec.forProvider.connection.options{}":                   {harmless: ownSecret},
		"Credential.spec.forProvider.connection.provider":                    {harmless: ownSecret},
		"Credential.spec.forProvider.connection.type":                        {harmless: ownSecret},
		"Credential.spec.forProvider.connection.username":                    {harmless: ownSecret},
		"Credential.spec.forProvider.keys[].derive[].key":                    {harmless: ownSecret},
		"Credential.spec.forProvider.keys[].name":                            {harmless: ownSecret},
		"Credential.spec.forProvider.rotation.accepted":                      {harmless: "It is only compared with what is staged, and takes that into use early at worst."},
		"Credential.spec.forProvider.remember":                               {harmless: ownSecret},
		"Credential.spec.forProvider.rotation.every":                         {harmless: "The schema bounds it."},
		"Credential.spec.forProvider.rotation.id":                            {harmless: "It is only compared with what it was."},
		"Credential.spec.forProvider.rotation.keepPrevious":                  {harmless: "The schema bounds it."},
		"Access.metadata.annotations[crossplane.io/external-name]":           {harmless: "An Access is many things in a server, none of which has its name."},
		"Access.spec.forProvider.databases[].name":                           {harmless: ownServer},
		"Access.spec.forProvider.extensions[]":                               {harmless: ownServer},
		"Access.spec.forProvider.logins[].alternate":                         {harmless: ownServer},
		"Access.spec.forProvider.logins[].database":                          {harmless: ownServer},
		"Access.spec.forProvider.logins[].name":                              {harmless: ownServer},
		"Access.spec.forProvider.logins[].passwordSecretRef.key":             {harmless: ownCredential},
		"Access.spec.forProvider.logins[].passwordSecretRef.name":            {harmless: ownCredential},
		"Access.spec.forProvider.server.caSecretRef.key":                     {harmless: ownNamespace},
		"Access.spec.forProvider.server.caSecretRef.name":                    {harmless: ownNamespace},
		"Access.spec.forProvider.server.host":                                {attack: othersServer},
		"Access.spec.forProvider.server.passwordSecretRef.key":               {harmless: ownCredential},
		"Access.spec.forProvider.server.passwordSecretRef.name":              {attack: strangersSecret},
		"Access.spec.forProvider.server.username":                            {harmless: ownServer},
		"FlinkJob.metadata.annotations[crossplane.io/external-name]":         {harmless: "A FlinkJob has nothing outside."},
		"FlinkJob.spec.forProvider.pipeline":                                 {harmless: "It selects among the pods of its own namespace."},
		"Hook.metadata.annotations[crossplane.io/external-name]":             {harmless: "A Hook has nothing outside."},
		"Hook.spec.forProvider.requests[].body":                              {harmless: "It is data for the URL, and the schema bounds it."},
		"Hook.spec.forProvider.requests[].key":                               {harmless: "The schema allows no character that would begin another header."},
		"Hook.spec.forProvider.requests[].until":                             {harmless: "It is a time."},
		"Hook.spec.forProvider.secretName":                                   {attack: othersHookSecret},
		"Hook.spec.forProvider.url":                                          {attack: hookURLs},
		"JobHistory.metadata.annotations[crossplane.io/external-name]":       {harmless: "A JobHistory has nothing outside."},
		"JobHistory.spec.forProvider.pipeline":                               {attack: othersJobs},
		"Lineage.metadata.annotations[crossplane.io/external-name]":          {harmless: "A Lineage has no name outside."},
		"Lineage.spec.providerConfigRef.kind":                                {attack: kindsOfConfig},
		"Lineage.spec.providerConfigRef.name":                                {attack: othersConfig},
		"Lineage.spec.forProvider.job":                                       {harmless: "It is a name in the namespace of jobs that the config defines, which has the namespace of the Lineage."},
		"Lineage.spec.forProvider.inputs[].namespace":                        {harmless: anyDataset},
		"Lineage.spec.forProvider.inputs[].name":                             {harmless: anyDataset},
		"Lineage.spec.forProvider.outputs[].namespace":                       {harmless: anyDataset},
		"Lineage.spec.forProvider.outputs[].name":                            {harmless: anyDataset},
		"Lineage.spec.forProvider.runs[].name":                               {harmless: "It is hashed with the cluster and the namespace into the ID of a run."},
		"Lineage.spec.forProvider.runs[].startedAt":                          {harmless: "It is a time."},
		"Lineage.spec.forProvider.runs[].outputs[].namespace":                {harmless: anyDataset},
		"Lineage.spec.forProvider.runs[].outputs[].name":                     {harmless: anyDataset},
		"Lineage.spec.forProvider.runs[].endedAt":                            {harmless: "It is a time."},
		"Receiver.metadata.annotations[crossplane.io/external-name]":         {harmless: "A Receiver has nothing outside."},
		"Receiver.spec.forProvider.rules[].name":                             {harmless: "It is a part of the names of its Signals, which the schema bounds."},
		"Receiver.spec.forProvider.rules[].match{}":                          {harmless: "It is compared for equality only."},
		"Receiver.spec.forProvider.rules[].target.name":                      {harmless: "It is the name of an object of the same namespace."},
		"Receiver.spec.forProvider.rules[].hook":                             {harmless: "It is the name of a hook of that object, which the schema bounds."},
		"Receiver.spec.forProvider.rules[].for":                              {harmless: "It is a time, which the schema bounds."},
		"Receiver.spec.forProvider.secretName":                               {harmless: "It is a Secret of the same namespace, whose values only compare with what a sender sent. No answer and no condition has any of them."},
		"Run.metadata.annotations[crossplane.io/external-name]":              {harmless: "A Run has nothing outside."},
		"Run.spec.forProvider.job":                                           {attack: othersPods},
		"Signal.metadata.annotations[crossplane.io/external-name]":           {harmless: "A Signal has nothing outside."},
		"Signal.spec.forProvider.target.name":                                {harmless: "It is the name of an object of the same namespace."},
		"Signal.spec.forProvider.hook":                                       {harmless: "It is compared for equality only: the owner of the object says what a hook is."},
		"Signal.spec.forProvider.revision":                                   {harmless: "It is compared for equality only."},
		"Signal.spec.forProvider.expiresAt":                                  {harmless: "It is a time, and a week after the creation is the latest end."},
		"Signal.spec.forProvider.source":                                     {harmless: "It is text in messages and in the status of an object of the same namespace, and the schema bounds it."},
		"Signal.spec.forProvider.reason":                                     {harmless: "The same."},
		"Topology.metadata.annotations[crossplane.io/external-name]":         {harmless: "A Topology has nothing outside."},
		"Topology.spec.forProvider.database":                                 {harmless: "It selects among the pods of its own namespace."},
		"Topology.spec.forProvider.members[]":                                {harmless: "It selects among the pods of its own namespace."},
		"Topology.spec.forProvider.nodeSelector{}":                           {harmless: countsNodes},
		"Topology.spec.forProvider.nodeTerms[].matchExpressions[].key":       {harmless: countsNodes},
		"Topology.spec.forProvider.nodeTerms[].matchExpressions[].values[]":  {harmless: countsNodes},
		"Topology.spec.forProvider.tolerations[].effect":                     {harmless: countsNodes},
		"Topology.spec.forProvider.tolerations[].key":                        {harmless: countsNodes},
		"Topology.spec.forProvider.tolerations[].operator":                   {harmless: countsNodes},
		"Topology.spec.forProvider.tolerations[].value":                      {harmless: countsNodes},
		"Topology.spec.forProvider.removeSecrets[]":                          {harmless: ownNamespace + " It removes what cert-manager made and can make again."},
		"Topology.spec.forProvider.switchover.from":                          {harmless: "It is an annotation of a ConfigMap of its own namespace that carries the labels of its own Database."},
		"Topology.spec.forProvider.switchover.id":                            {harmless: "It is written into an annotation of a ConfigMap of its own namespace that carries the labels of its own Database."},
		"Topology.spec.forProvider.switchover.to":                            {harmless: "It is an annotation of a ConfigMap of its own namespace that carries the labels of its own Database."},
		"Topology.spec.forProvider.scope":                                    {harmless: "It selects among the ConfigMaps of its own namespace."},
		"VolumeClaim.metadata.annotations[crossplane.io/external-name]":      {harmless: "A VolumeClaim has nothing outside."},
		"VolumeClaim.spec.forProvider.database":                              {harmless: ownVolumes},
		"VolumeClaim.spec.forProvider.identity":                              {harmless: ownVolumes},
		"VolumeClaim.spec.forProvider.members[]":                             {harmless: ownVolumes},
		"VolumeClaim.spec.forProvider.wal.storageClassName":                  {harmless: "It makes claims in its own namespace only, as a tenant can, too."},
		"Analysis.metadata.annotations[crossplane.io/external-name]":         {harmless: "An Analysis has nothing outside."},
		"Analysis.spec.providerConfigRef.kind":                               {attack: kindsOfConfig},
		"Analysis.spec.providerConfigRef.name":                               {attack: othersConfig},
		"Analysis.spec.forProvider.algorithm":                                {attack: othersAlgorithm},
		"Analysis.spec.forProvider.container":                                {harmless: "It selects among the containers of the pods of its own namespace."},
		"Analysis.spec.forProvider.secrets[]":                                {attack: othersFingerprint},
		"Analysis.spec.forProvider.metrics.interval":                         {harmless: "The schema bounds it."},
		"Analysis.spec.forProvider.metrics.window":                           {harmless: "The schema bounds it."},
		"Analysis.spec.forProvider.metrics.slots[]":                          {attack: othersSlot},
		"Analysis.spec.forProvider.metrics.queries.requests":                 {attack: othersSeries(func(m *observev1alpha1.MetricsParameters, q string) { m.Queries.Requests = q })},
		"Analysis.spec.forProvider.metrics.queries.failures":                 {attack: othersSeries(func(m *observev1alpha1.MetricsParameters, q string) { m.Queries.Failures = q })},
		"Analysis.spec.forProvider.metrics.queries.latency":                  {attack: othersSeries(func(m *observev1alpha1.MetricsParameters, q string) { m.Queries.Latency = q })},
		"Analysis.spec.forProvider.metrics.queries.inFlight":                 {attack: othersSeries(func(m *observev1alpha1.MetricsParameters, q string) { m.Queries.InFlight = q })},
		"Analysis.spec.forProvider.metrics.checks[].name":                    {harmless: "It only names what is told."},
		"Analysis.spec.forProvider.metrics.checks[].query":                   {attack: othersSeries(func(m *observev1alpha1.MetricsParameters, q string) { m.Checks[0].Query = q })},
		"Analysis.spec.forProvider.metrics.checks[].reference":               {harmless: "The schema bounds it, and queries about the past are narrowed like all others."},
		"Analysis.spec.forProvider.metrics.trial[].name":                     {harmless: "It only names what is reported."},
		"Analysis.spec.forProvider.metrics.trial[].query":                    {attack: othersTrial},
		"Analysis.spec.forProvider.metrics.trial[].reference":                {harmless: "The schema bounds it, and queries about the past are narrowed like all others."},
		"Analysis.spec.forProvider.metrics.canary.slot":                      {attack: othersCanary},
		"Analysis.spec.forProvider.metrics.canary.baseline":                  {attack: othersCanary},
		"Analysis.spec.forProvider.metrics.canary.settle":                    {harmless: "The schema bounds it."},
		"Analysis.spec.forProvider.metrics.canary.decidesAt":                 {harmless: "It is when an Analysis reports on its own Algorithm."},
		"Analysis.spec.forProvider.metrics.canary.checks[].name":             {harmless: "It only names what is told."},
		"Analysis.spec.forProvider.metrics.canary.checks[].query":            {attack: othersCanary},
		"Analysis.spec.forProvider.metrics.canary.experiment.events":         {attack: othersCanary},
		"Analysis.spec.forProvider.metrics.canary.experiment.of":             {attack: othersCanary},
		"Analysis.spec.forProvider.metrics.canary.checks[].reference":        {harmless: "The schema bounds it, and queries about the past are narrowed like all others."},
		"Analysis.spec.forProvider.metrics.slo.window":                       {harmless: "The schema bounds it."},
		"Analysis.spec.forProvider.metrics.scaling.slot":                     {harmless: "It goes where the slots go."},
		"Analysis.spec.forProvider.metrics.scaling.query": {attack: othersSeries(func(m *observev1alpha1.MetricsParameters, q string) {
			m.Scaling.Signal, m.Scaling.Query = observev1alpha1.SignalQuery, q
		})},
	}
}

// TestEveryFieldHasAnEntry finds the fields in the schemas.
func TestEveryFieldHasAnEntry(t *testing.T) {
	var all []string

	paths, err := filepath.Glob("../../package/provider/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}

	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}

		crd := &extv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, crd); err != nil {
			t.Fatal(err)
		}

		s, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		if !ok {
			continue // a ProviderConfigUsage, which nobody writes
		}

		all = append(all, texts(crd.Spec.Names.Kind+".spec", s)...)
		if slices.Contains(crd.Spec.Names.Categories, "managed") {
			all = append(all, crd.Spec.Names.Kind+".metadata.annotations[crossplane.io/external-name]")
		}
	}

	slices.Sort(all)

	if diff := cmp.Diff(slices.Sorted(maps.Keys(fields())), all); diff != "" {
		t.Errorf("-fields with an entry, +fields of the schemas:\n%s", diff)
	}
}

// texts are the paths of free text below s.
func texts(path string, s extv1.JSONSchemaProps) []string {
	var all []string

	for name, below := range s.Properties {
		all = append(all, texts(path+"."+name, below)...)
	}

	if s.Items != nil {
		all = append(all, texts(path+"[]", *s.Items.Schema)...)
	}

	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		all = append(all, texts(path+"{}", *s.AdditionalProperties.Schema)...)
	}

	if s.Type == "string" && len(s.Enum) == 0 {
		all = append(all, path)
	}

	return all
}

// A stage has two tenants who share the platform's servers. shop has a bucket
// and a model; bank attacks.
type stage struct {
	*bench
	*servers

	// whole is the test with all attacks.
	whole *testing.T

	n int
}

// name that is new.
func (s *stage) name() string {
	s.n++

	return fmt.Sprintf("attack-%d", s.n)
}

// TestTenants carries out every attack.
func TestTenants(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	s := &stage{bench: b, servers: b.outside(), whole: t}
	b.start("--poll-interval=1s")

	victims := []resource.Managed{bucket("shop", "assets"), model("shop", "reco"), version("shop", "reco-1", "reco"), alias("shop", "champion", "reco", "champion", "1")}
	for _, v := range victims {
		b.apply(v)
	}

	b.becomeReady(time.Minute, victims...)

	b.apply(
		&corev1.Secret{ObjectMeta: meta("shop", "precious"), StringData: map[string]string{
			v1alpha1.KeyAccessKeyID: "a", v1alpha1.KeySecretAccessKey: "b", v1alpha1.KeyUsername: "c", v1alpha1.KeyPassword: "d", v1alpha1.KeyToken: "e",
		}},
		&corev1.Secret{ObjectMeta: meta("bank", "own"), StringData: map[string]string{
			v1alpha1.KeyAccessKeyID: "a", v1alpha1.KeySecretAccessKey: "b",
		}},
		&v1alpha1.ProviderConfig{ObjectMeta: meta("shop", "private"), Spec: s3At("https://203.0.113.1")},
	)

	all := fields()
	for _, path := range slices.Sorted(maps.Keys(all)) {
		f := all[path]
		if (f.attack == nil) == (f.harmless == "") {
			t.Errorf("%s: want an attack, or why there is none", path)
		}

		if f.attack != nil {
			t.Run(path, func(t *testing.T) {
				was := b.t
				b.t = t

				defer func() { b.t = was }()

				f.attack(t, s)
			})
		}
	}

	// The victims are unchanged.
	b.becomeReady(time.Minute, victims...)

	if _, body := s.mlflow.Call(http.MethodGet, "registered-models/get?name=reco", nil); strings.Contains(body, "/bank/") || strings.Contains(body, "evil") {
		t.Errorf("The model of shop was changed: %s", body)
	}
}

func s3At(endpoint string) v1alpha1.ProviderConfigSpec {
	return v1alpha1.ProviderConfigSpec{S3: &v1alpha1.S3Config{
		Endpoint: endpoint, Credentials: v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "own"}},
	}}
}

func mlflowAt(url string) v1alpha1.ProviderConfigSpec {
	return v1alpha1.ProviderConfigSpec{MLflow: &v1alpha1.MLflowConfig{URL: url}}
}

func prometheusAt(url string) v1alpha1.ProviderConfigSpec {
	return v1alpha1.ProviderConfigSpec{Prometheus: &v1alpha1.PrometheusConfig{URL: url}}
}

func openLineageAt(url string) v1alpha1.ProviderConfigSpec {
	return v1alpha1.ProviderConfigSpec{OpenLineage: &v1alpha1.OpenLineageConfig{URL: url}}
}

func basic(name string) *v1alpha1.HTTPCredentials {
	return &v1alpha1.HTTPCredentials{Basic: &v1alpha1.BasicCredentials{SecretRef: v1alpha1.SecretReference{Name: name}}}
}

func bearer(name string) *v1alpha1.HTTPCredentials {
	return &v1alpha1.HTTPCredentials{Bearer: &v1alpha1.BearerCredentials{SecretRef: v1alpha1.SecretReference{Name: name}}}
}

// refused by the schema.
func (s *stage) refused(t *testing.T, why string, o client.Object) {
	t.Helper()

	if err := s.Create(t.Context(), o); !kerrors.IsInvalid(err) {
		t.Errorf("%s: want the schema to refuse it, got %v", why, err)
	}
}

// urls that a tenant must not reach.
func urls(spec func(string) v1alpha1.ProviderConfigSpec) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()

		// Nothing else connects here.
		trap := outside.Proxy(t, s.s3.Endpoint, s.s3.CA)
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(trap.URL, "https://"))
		_, api, _ := net.SplitHostPort(strings.Trim(strings.TrimPrefix(s.cfg.Host, "https://"), "/"))

		for _, url := range []string{
			"https://127.0.0.1:" + port, "https://localhost:" + port, "https://[::1]:" + port, "https://[::ffff:127.0.0.1]:" + port,
			"https://0.0.0.0:" + port, "https://127.1.2.3:" + port,
			"http://169.254.169.254", "http://[fd00:ec2::254]", "http://100.100.100.200", "http://[fe80::1]", "http://224.0.0.1",
			"https://127.0.0.1:" + api,
			// Where pods, Services and nodes of others are.
			"http://10.1.2.3:9000", "http://172.16.1.2", "http://192.168.1.2:10255", "http://100.64.1.2", "http://[fd12::1]", "http://[::ffff:10.1.2.3]",
		} {
			pc := &v1alpha1.ProviderConfig{ObjectMeta: meta("bank", s.name()), Spec: spec(url)}
			s.apply(pc)
			s.connected(30*time.Second, pc, v1alpha1.ReasonAddressRefused)

			if got := trap.Requests(); len(got) != 0 {
				t.Errorf("%s: want no request, got %v", url, got)
			}
		}

		for _, url := range []string{
			"file:///etc/passwd", "gopher://example.org", "https://user:password@example.org", "https://example.org?x=y",
			"https://example.org#x", "https://", "example.org", "https://example.org\r\nX: y",
		} {
			s.refused(t, url, &v1alpha1.ProviderConfig{ObjectMeta: meta("bank", s.name()), Spec: spec(url)})
		}
	}
}

// secrets of other tenants.
func secrets(spec func(string) v1alpha1.ProviderConfigSpec) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()

		// It exists, in another namespace.
		pc := &v1alpha1.ProviderConfig{ObjectMeta: meta("bank", s.name()), Spec: spec("precious")}
		s.apply(pc)
		s.connected(30*time.Second, pc, v1alpha1.ReasonCredentialsMissing)

		for _, name := range []string{"shop/precious", "../shop/precious", "..", "precious\n", ""} {
			s.refused(t, name, &v1alpha1.ProviderConfig{ObjectMeta: meta("bank", s.name()), Spec: spec(name)})
		}
	}
}

// regions become part of host names at Amazon.
func regions(t *testing.T, s *stage) {
	t.Helper()

	for _, region := range []string{"evil.example.org/", "a@evil.example.org", "x.y", "A B"} {
		spec := s3At("")
		spec.S3.Region = region
		s.refused(t, region, &v1alpha1.ProviderConfig{ObjectMeta: meta("bank", s.name()), Spec: spec})
	}
}

func bucketRegions(t *testing.T, s *stage) {
	t.Helper()

	for _, region := range []string{"evil.example.org/", "a@evil.example.org", "x.y", "A B"} {
		b := bucket("bank", s.name())
		b.Spec.ForProvider.Region = &region
		s.refused(t, region, b)
	}
}

// managed resources of bank, one of each kind.
func (s *stage) managed() []resource.ModernManaged {
	return []resource.ModernManaged{
		bucket("bank", s.name()), model("bank", s.name()), version("bank", s.name(), "money"), alias("bank", s.name(), "money", "champion", "1"),
		analysis("bank", s.name(), "reco"), lineage("bank", s.name()),
	}
}

func kindsOfConfig(t *testing.T, s *stage) {
	t.Helper()

	for _, kind := range []string{"Secret", "clusterproviderconfig", "ClusterProviderConfig/s3", ""} {
		for _, mg := range s.managed() {
			mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: kind, Name: "s3"})
			s.refused(t, kind, mg)
		}
	}
}

func othersConfig(t *testing.T, s *stage) {
	t.Helper()

	for _, mg := range s.managed() {
		mg.SetProviderConfigReference(reference("private"))
		s.apply(mg)
		s.connected(30*time.Second, mg, v1alpha1.ReasonConfigNotFound)
	}

	for _, name := range []string{"shop/private", "../shop/private", "private\n", ""} {
		for _, mg := range s.managed() {
			mg.SetProviderConfigReference(reference(name))
			s.refused(t, name, mg)
		}
	}
}

// othersBucket on a shared server.
func othersBucket(t *testing.T, s *stage) {
	t.Helper()

	for _, external := range []string{"shop-assets", "assets", "shop-new", "bank-/../shop-assets", "bank-x?acl", "bank-x#y", "bank-\r\nx"} {
		for _, policies := range []xpv2.ManagementPolicies{{"*"}, {"Observe"}} {
			b := bucket("bank", s.name())
			b.Spec.ManagementPolicies = policies
			b.Spec.ForProvider.Adopt, b.Spec.ForProvider.ForceDestroy = true, true
			runtimemeta.SetExternalName(b, external)
			s.toS3.Reset()
			s.apply(b)
			s.failed(t, b)

			for _, r := range s.toS3.Requests() {
				if strings.Contains(r, strings.Split(external, "?")[0]) && !strings.HasPrefix(r, "HEAD ") && !strings.HasPrefix(r, "GET ") {
					t.Errorf("%q: got %s", external, r)
				}
			}
		}
	}
}

// failed waits until a managed resource reports that it cannot be created.
func (s *stage) failed(t *testing.T, mg resource.Managed) {
	t.Helper()

	s.eventually(30*time.Second, "refusal", func() string {
		s.get(mg)

		if c := mg.GetCondition(xpv2.TypeSynced); c.Status == corev1.ConditionFalse {
			return ""
		}

		return ready(mg) + " is not told"
	})

	if mg.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue {
		t.Errorf("%T %s is ready", mg, mg.GetName())
	}
}

func someonesSecret(t *testing.T, s *stage) {
	t.Helper()

	name := s.name()
	theirs := &corev1.Secret{ObjectMeta: meta("bank", name), StringData: map[string]string{"precious": "yes"}}
	b := bucket("bank", name)
	b.Spec.WriteConnectionSecretToReference = connection(name)
	s.apply(theirs, b)
	s.failed(t, b)
	s.get(theirs)

	if len(theirs.Data) != 1 || len(theirs.OwnerReferences) != 0 {
		t.Errorf("A Secret that was there was written over: %v", slices.Collect(maps.Keys(theirs.Data)))
	}
}

func ownerTag(t *testing.T, s *stage) {
	t.Helper()

	for _, key := range []string{"capstan.dev/owner", "capstan.dev/x", "aws:x"} {
		b := bucket("bank", s.name())
		b.Spec.ForProvider.Tags = map[string]string{key: "x"}
		s.refused(t, key, b)
	}
}

func ownerTagOfModel(t *testing.T, s *stage) {
	t.Helper()

	for _, key := range []string{"capstan.dev/owner", "capstan.dev/alias.champion", "mlflow.prompt.is_prompt", "a'b", "a`b", "a\nb"} {
		m := model("bank", s.name())
		m.Spec.ForProvider.Tags = map[string]string{key: "x"}
		s.refused(t, key, m)

		v := version("bank", s.name(), "money")
		v.Spec.ForProvider.Tags = map[string]string{key: "x"}
		s.refused(t, key, v)
	}
}

func othersModel(t *testing.T, s *stage) {
	t.Helper()

	for _, policies := range []xpv2.ManagementPolicies{{"*"}, {"Observe"}} {
		m := model("bank", s.name())
		m.Spec.ManagementPolicies = policies
		m.Spec.ForProvider.Adopt = true
		evil := "evil"
		m.Spec.ForProvider.Description = &evil
		runtimemeta.SetExternalName(m, "reco")
		s.apply(m)
		s.failed(t, m)
	}
}

func versionOfOthersModel(t *testing.T, s *stage) {
	t.Helper()

	v := version("bank", s.name(), "reco")
	s.apply(v)
	s.failed(t, v)

	for _, name := range []string{"reco/../x", "a:b", `a\b`, "a'b", "a%2fb", "a\nb"} {
		s.refused(t, name, version("bank", s.name(), name))
	}
}

func othersVersion(t *testing.T, s *stage) {
	t.Helper()

	for _, policies := range []xpv2.ManagementPolicies{{"*"}, {"Observe"}} {
		v := version("bank", s.name(), "reco")
		v.Spec.ManagementPolicies = policies
		evil := "evil"
		v.Spec.ForProvider.Description = &evil
		runtimemeta.SetExternalName(v, "1")
		s.apply(v)
		s.failed(t, v)
	}
}

func observeOthersModel(t *testing.T, s *stage) {
	t.Helper()

	one, champion := "1", "champion"

	for _, p := range []func(*stage) resource.Managed{
		func(s *stage) resource.Managed {
			v := version("bank", s.name(), "reco")
			v.Spec.ForProvider.Source, v.Spec.ForProvider.Version = nil, &one
			v.Spec.ManagementPolicies = xpv2.ManagementPolicies{"Observe"}

			return v
		},
		func(s *stage) resource.Managed {
			v := version("bank", s.name(), "reco")
			v.Spec.ForProvider.Source, v.Spec.ForProvider.Alias = nil, &champion
			v.Spec.ManagementPolicies = xpv2.ManagementPolicies{"Observe"}

			return v
		},
	} {
		v := p(s)
		s.apply(v)
		s.failed(t, v)
	}
}

func aliasOfOthersModel(t *testing.T, s *stage) {
	t.Helper()

	for _, name := range []string{"champion", "evil"} {
		a := alias("bank", s.name(), "reco", name, "1")
		a.Spec.ForProvider.Adopt = true
		s.apply(a)
		s.failed(t, a)
	}
}

// evidenceOfOthers becomes tags of versions: not of another namespace's version, and not with another meaning.
func evidenceOfOthers(t *testing.T, s *stage) {
	t.Helper()

	for _, key := range []string{
		"", "owner/x", "/owner", "../owner", "a b", "a\n", "A", "1", ".x", "a'b", "a`b", "capstan.dev/owner", strings.Repeat("k", 38),
	} {
		a := alias("bank", s.name(), "money", "champion", "1")
		a.Spec.ForProvider.Evidence = map[string]string{key: "evil"}
		s.refused(t, key, a)
	}

	for _, name := range []string{"champion", "owner", "alias"} {
		a := alias("bank", s.name(), "reco", name, "1")
		a.Spec.ForProvider.Adopt = true
		a.Spec.ForProvider.Evidence = map[string]string{"revision": "evil", "champion": "evil"}
		s.apply(a)
		s.failed(t, a)
	}

	if status, body := s.mlflow.Call(http.MethodGet, "model-versions/get?name=reco&version=1", nil); status != http.StatusOK || strings.Contains(body, "evil") {
		t.Errorf("The version of shop was changed: %d: %s", status, body)
	}
}

func sources(t *testing.T, s *stage) {
	t.Helper()

	for _, source := range []string{
		"file:///etc/passwd", "/etc/passwd", "s3://models/../../etc", "s3://models/%2e%2e/etc", "s3://models/%2E%2E/etc",
		`s3://models\..\etc`, "s3://models/a b", "", "models/x", "s3://models/%2f..", "s3://models/\n",
	} {
		v := version("bank", s.name(), "money")
		v.Spec.ForProvider.Source = &source
		s.refused(t, source, v)
	}
}

func someonesCredential(t *testing.T, s *stage) {
	t.Helper()

	name := s.name()
	theirs := &corev1.Secret{ObjectMeta: meta("bank", name), StringData: map[string]string{"password": "precious"}}
	c := &credentialsv1alpha1.Credential{ObjectMeta: meta("bank", s.name())}
	runtimemeta.SetExternalName(c, name)
	s.apply(theirs, c)
	s.failed(t, c)
	s.get(theirs)

	if string(theirs.Data["password"]) != "precious" {
		t.Error("A Secret that was there was written over")
	}
}

// othersCA is in another namespace.
func othersCA(t *testing.T, s *stage) {
	t.Helper()

	port := int32(5432)

	for _, from := range []*credentialsv1alpha1.CASource{
		{SecretKeyRef: &credentialsv1alpha1.KeyReference{Name: "precious", Key: v1alpha1.KeyToken}},
		{ConfigMapKeyRef: &credentialsv1alpha1.KeyReference{Name: "kube-root-ca.crt", Key: "ca.crt"}},
	} {
		c := &credentialsv1alpha1.Credential{ObjectMeta: meta("bank", s.name())}
		c.Spec.ForProvider.Connection = &credentialsv1alpha1.Connection{
			Type: credentialsv1alpha1.TypePostgreSQL, Host: "db.example.org", Port: &port, Username: "app", CAFrom: from,
		}
		s.apply(c)
		s.eventually(30*time.Second, "it waits for what is not in its own namespace", func() string {
			s.get(c)

			if r := c.GetCondition(xpv2.TypeReady); r.Status == corev1.ConditionFalse && strings.Contains(r.Message, "does not exist yet") {
				return ""
			}

			return ready(c)
		})

		made := &corev1.Secret{ObjectMeta: meta("bank", c.GetName())}
		s.get(made)

		if got, ok := made.Data[credentialsv1alpha1.KeyCA]; ok {
			t.Errorf("its Secret has certificates of another namespace: %q", got)
		}
	}

	for _, name := range []string{"shop/precious", "../shop/precious"} {
		c := &credentialsv1alpha1.Credential{ObjectMeta: meta("bank", s.name())}
		c.Spec.ForProvider.Connection = &credentialsv1alpha1.Connection{
			Type: credentialsv1alpha1.TypePostgreSQL, Host: "db.example.org", Port: &port, Username: "app",
			CAFrom: &credentialsv1alpha1.CASource{SecretKeyRef: &credentialsv1alpha1.KeyReference{Name: name, Key: "x"}},
		}
		s.refused(t, name, c)
	}
}
