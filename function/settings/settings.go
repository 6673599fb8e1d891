// SPDX-License-Identifier: Apache-2.0

// Package settings reads the settings of the platform: built-in defaults, and over them what the input of the Composition and the
// EnvironmentConfig say.
package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/allow"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database"
	"github.com/capstan-dev/capstan/function/release"
	"github.com/capstan-dev/capstan/input/v1alpha1"
	"github.com/capstan-dev/capstan/internal/runbook"
)

// InputAPIVersion and InputKind are the type of the function's input.
const (
	InputAPIVersion = "capstan.dev/v1alpha1"
	InputKind       = "Settings"
)

// Sources of settings, as messages call them.
const (
	sourceInput = "input of function-capstan"
	// SourceEnvironment is what messages call the EnvironmentConfig.
	SourceEnvironment = `EnvironmentConfig "` + Name + `"`
)

// Where our images are in public.
const (
	companionRepository = "ghcr.io/capstan-dev/companion"
	postgresRepository  = "ghcr.io/capstan-dev/postgres"
	mysqlRepository     = "ghcr.io/capstan-dev/mysql"
)

// Kinds of configs that say where outside services are.
const (
	kindConfig        = "ProviderConfig"
	kindClusterConfig = "ClusterProviderConfig"
)

// maxMistakes is how many mistakes in settings are reported. A condition's message is for people.
const maxMistakes = 3

// Name of the EnvironmentConfig with the platform's settings.
const Name = "capstan"

// Of the platform, for a release: built-in defaults, over them the function's input in the Composition, which is nil where there is none, over it the
// EnvironmentConfigs, field by field. A field that cannot be used is left out and reported in the error, which names its source, path and
// value; the settings are usable nevertheless.
func Of(r release.Release, input compose.Object, environments ...compose.Object) (v1alpha1.Settings, error) {
	s := Defaults()
	mistakes := checkInput(input)
	mistakes = append(mistakes, override(s, sourceInput, inputFields(input))...)
	for _, o := range environments {
		mistakes = append(mistakes, override(s, SourceEnvironment, compose.Map(o.Map(), "data"))...)
	}
	mistakes = append(mistakes, complete(s, r)...)
	if len(mistakes) == 0 {
		return *s, nil
	}
	if n := len(mistakes) - maxMistakes; n > 0 {
		mistakes = append(mistakes[:maxMistakes], fmt.Sprintf("%d more", n))
	}
	return *s, errors.New(strings.Join(mistakes, "; "))
}

// Defaults of a platform that sets nothing.
func Defaults() *v1alpha1.Settings {
	cpu, memory := resource.MustParse("250m"), resource.MustParse("256Mi")
	cpuOfGPU, memoryOfGPU := resource.MustParse("1"), resource.MustParse("4Gi")
	return &v1alpha1.Settings{
		Algorithm: v1alpha1.AlgorithmSettings{
			CPU:               &cpu,
			Memory:            &memory,
			GPU:               v1alpha1.AlgorithmGPUSettings{CPU: &cpuOfGPU, Memory: &memoryOfGPU},
			CompanionImage:    companionRepository,
			Prometheus:        &xpv2.ProviderConfigReference{Kind: kindClusterConfig, Name: "prometheus"},
			MetricsNamespaces: []string{"monitoring"},
			MLflow:            &xpv2.ProviderConfigReference{Kind: kindClusterConfig, Name: "mlflow"},
			ModelImages:       apisv1alpha1.DeliverImageVolume,
			Pod:               v1alpha1.AlgorithmPodSettings{Volumes: v1alpha1.UsualPodVolumes()},
		},
		Database: v1alpha1.DatabaseSettings{
			Image:               postgresRepository,
			MySQLImage:          mysqlRepository,
			Plans:               plans(),
			MetricsNamespaces:   []string{"monitoring"},
			CrossplaneNamespace: "crossplane-system",
		},
		Pipeline: v1alpha1.PipelineSettings{Lineage: &xpv2.ProviderConfigReference{Kind: kindClusterConfig, Name: apisv1alpha1.DefaultOpenLineageConfig}},
		Alerts:   v1alpha1.AlertSettings{RunbookPage: runbook.Page},
	}
}

// plans that there are without settings. They must not change: members would be restarted by an upgrade of the function.
func plans() []v1alpha1.DatabasePlan {
	plan := func(name, cpu, memory string, connections int32) v1alpha1.DatabasePlan {
		return v1alpha1.DatabasePlan{
			Name: name, CPU: resource.MustParse(cpu), Memory: resource.MustParse(memory), MaxConnections: connections,
		}
	}
	return []v1alpha1.DatabasePlan{
		plan("default", "500m", "1Gi", 100),
		plan("small", "1", "2Gi", 100),
		plan("medium", "2", "8Gi", 200),
		plan("large", "4", "32Gi", 400),
	}
}

// checkInput reports whether the function's input is of our type.
func checkInput(input compose.Object) []string {
	if input == nil {
		return nil
	}
	if v, k := compose.TextOf(input, "apiVersion"), compose.TextOf(input, "kind"); v != InputAPIVersion || k != InputKind {
		return []string{fmt.Sprintf("%s: cannot use apiVersion %q and kind %q: must be %s %s",
			sourceInput, v, k, InputAPIVersion, InputKind)}
	}
	return nil
}

// inputFields are the settings in the function's input.
func inputFields(input compose.Object) map[string]any {
	if input == nil {
		return nil
	}
	m := maps.Clone(input.Map())
	maps.DeleteFunc(m, func(k string, _ any) bool {
		return k == "apiVersion" || k == "kind" || k == "metadata"
	})
	return m
}

// override settings by the settings of a source. When they cannot be used as a whole they are set field by field, so that a mistake
// costs one field and the message names it.
func override(s *v1alpha1.Settings, source string, m map[string]any) []string {
	all := leaves(m)
	if set(s, all...) == nil {
		return nil
	}
	var mistakes []string
	for _, l := range all {
		if err := set(s, l); err != nil {
			mistakes = append(mistakes, fmt.Sprintf("%s: %s: cannot use %.60q: %v",
				source, strings.Join(l.path, "."), fmt.Sprint(l.value), err))
		}
	}
	return mistakes
}

// set fields of the settings, all or none.
func set(s *v1alpha1.Settings, ls ...leaf) error {
	// Lists are emptied first: their items would else keep fields of the items that were at their place.
	lists, all := map[string]any{}, map[string]any{}
	for _, l := range ls {
		put(all, l.path, l.value)
		if _, ok := l.value.([]any); ok {
			put(lists, l.path, nil)
		}
	}
	next := s.DeepCopy()
	for _, m := range []map[string]any{lists, all} {
		raw, err := json.Marshal(m)
		if err != nil {
			return err
		}
		unknown, err := kjson.UnmarshalStrict(raw, next, kjson.DisallowUnknownFields)
		if err := errors.Join(append(unknown, err)...); err != nil {
			return err
		}
	}
	if err := checkAlgorithm(next.Algorithm); err != nil {
		return err
	}
	if err := checkDatabase(next.Database); err != nil {
		return err
	}
	if err := checkTraining(next.Training); err != nil {
		return err
	}
	if err := checkConfig(next.Pipeline.Lineage); err != nil {
		return err
	}
	if err := checkPage(next.Alerts.RunbookPage); err != nil {
		return err
	}
	if err := checkPreview(next.Preview); err != nil {
		return err
	}
	*s = *next
	return nil
}

// put a value at a path.
func put(m map[string]any, path []string, value any) {
	for _, k := range path[:len(path)-1] {
		below, ok := m[k].(map[string]any)
		if !ok {
			below = map[string]any{}
			m[k] = below
		}
		m = below
	}
	m[path[len(path)-1]] = value
}

// checkAlgorithm checks settings with one new field, so that what is wrong is about it.
func checkAlgorithm(a v1alpha1.AlgorithmSettings) error {
	for _, q := range []*resource.Quantity{a.CPU, a.Memory, a.GPU.CPU, a.GPU.Memory} {
		if q.Sign() <= 0 {
			return errors.New("must be greater than zero")
		}
	}
	if err := checkImage(a.CompanionImage); err != nil {
		return err
	}
	if err := checkGateway(a.Gateway); err != nil {
		return err
	}
	for _, name := range slices.Concat(a.GatewayNamespaces, a.MetricsNamespaces) {
		if errs := validation.IsDNS1123Label(name); name != "*" && len(errs) > 0 {
			return fmt.Errorf("%q is neither * nor the name of a namespace: %s", name, because(errs))
		}
	}
	if d := a.ModelImages; d != apisv1alpha1.DeliverImageVolume && d != apisv1alpha1.DeliverInitContainer {
		return fmt.Errorf("must be %s or %s", apisv1alpha1.DeliverImageVolume, apisv1alpha1.DeliverInitContainer)
	}
	for _, kind := range a.Pod.Volumes {
		if kinds := v1alpha1.PodVolumeKinds(); !slices.Contains(kinds, kind) {
			return fmt.Errorf("%q is no kind of volume that restricted pods can have: use any of %v", kind, kinds)
		}
	}
	if err := errors.Join(checkConfig(a.Prometheus), checkConfig(a.MLflow)); err != nil {
		return err
	}
	return allow.CheckAlgorithms(a.Allowed)
}

// checkConfig that settings name.
func checkConfig(ref *xpv2.ProviderConfigReference) error {
	if ref.Kind != kindClusterConfig && ref.Kind != kindConfig {
		return fmt.Errorf("must be %s or %s", kindClusterConfig, kindConfig)
	}
	if errs := validation.IsDNS1123Subdomain(ref.Name); len(errs) > 0 {
		return errors.New(because(errs))
	}
	return nil
}

// Bounds of a deadline, as the schema of a Training has them.
const (
	shortestDeadline = time.Minute
	longestDeadline  = 8760 * time.Hour
)

// checkTraining settings with one new field.
func checkTraining(t v1alpha1.TrainingSettings) error {
	if n := t.MaxWorkers; n != nil && *n < 1 {
		return errors.New("must be at least 1")
	}
	if n := t.MaxGPUs; n != nil && *n < 0 {
		return errors.New("must be at least 0")
	}
	if d := t.MaxDeadline; d != nil && (d.Duration < shortestDeadline || d.Duration > longestDeadline) {
		return errors.New("must be a time from 1m to 8760h")
	}
	return allow.CheckTrainings(t.Allowed)
}

// checkPage that alerts lead to.
func checkPage(page string) error {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Contains(page, "#") {
		return errors.New("must be an http or https URL without #")
	}
	return nil
}

// checkPreview checks settings with one new field.
func checkPreview(p v1alpha1.PreviewSettings) error {
	if errs := validation.IsDNS1123Subdomain(p.Domain); p.Domain != "" && len(errs) > 0 {
		return errors.New(strings.Join(errs, ", and "))
	}
	if p.Scheme != "" && p.Scheme != "http" && p.Scheme != "https" {
		return errors.New("must be http or https")
	}
	if p.MaxTTL != nil && p.MaxTTL.Duration < shortestPreview {
		return errors.New("must be at least 5m, the shortest spec.ttl of a Preview")
	}
	return nil
}

// shortestPreview is the lowest spec.ttl of a Preview.
const shortestPreview = 5 * time.Minute

func checkImage(image string) error {
	if image == "" || strings.ContainsFunc(image, func(r rune) bool { return r <= ' ' }) {
		return errors.New("must name an image, without white space")
	}
	return nil
}

// checkDatabase settings with one new field.
func checkDatabase(d v1alpha1.DatabaseSettings) error {
	images := []string{d.Image, d.MySQLImage}
	for _, i := range d.Images {
		images = append(images, i.Image)
		if len(i.Versions) == 0 {
			return fmt.Errorf("image %q has no versions: list those that are in it", i.Image)
		}
		for _, v := range i.Versions {
			if err := database.CheckVersion(i.Engine, v.Version); err != nil {
				return err
			}
		}
	}
	for _, i := range images {
		if err := checkImage(i); err != nil {
			return err
		}
	}
	if err := checkPlans(d.Plans); err != nil {
		return err
	}
	if i := d.IssuerRef; i != nil && i.Kind != "" && i.Kind != "Issuer" && i.Kind != "ClusterIssuer" {
		return errors.New("must be Issuer or ClusterIssuer")
	}
	if err := checkBackup(d.Backup); err != nil {
		return err
	}
	for _, name := range append([]string{d.CrossplaneNamespace}, d.MetricsNamespaces...) {
		if errs := validation.IsDNS1123Label(name); name != "*" && len(errs) > 0 {
			return fmt.Errorf("%q is neither * nor the name of a namespace: %s", name, because(errs))
		}
	}
	return allow.CheckDatabases(d.Allowed)
}

func checkBackup(b v1alpha1.DatabaseBackupSettings) error {
	if b.To != "" && b.To != v1alpha1.BackupToBucket && b.To != v1alpha1.BackupToVolume {
		return errors.New("must be Bucket or Volume")
	}
	if errs := validation.IsDNS1123Subdomain(b.StorageClassName); b.StorageClassName != "" && len(errs) > 0 {
		return errors.New(because(errs))
	}
	if r := b.LeastRate; r != nil && (r.Cmp(slowest) < 0 || r.Cmp(fastest) > 0) {
		return fmt.Errorf("leastRate must be from %s to %s, in bytes per second", slowest.String(), fastest.String())
	}
	return nil
}

// slowest and fastest rate of backups that deadlines may be made of.
var slowest, fastest = resource.MustParse("1Mi"), resource.MustParse("10Gi")

func checkPlans(ps []v1alpha1.DatabasePlan) error {
	for _, p := range ps {
		if errs := validation.IsDNS1123Label(p.Name); len(errs) > 0 {
			return fmt.Errorf("plan %q: %s", p.Name, because(errs))
		}
		if p.CPU.Sign() <= 0 || p.Memory.Cmp(leastMemory) < 0 {
			return fmt.Errorf("plan %q: cpu must be greater than zero, and memory at least %s", p.Name, leastMemory.String())
		}
		if p.MaxConnections != 0 && (p.MaxConnections < 20 || p.MaxConnections > 10000) {
			return fmt.Errorf("plan %q: maxConnections must be from 20 to 10000", p.Name)
		}
	}
	return nil
}

// leastMemory of a member of a Database.
var leastMemory = resource.MustParse("256Mi")

func checkGateway(g *apisv1alpha1.GatewayReference) error {
	if g == nil {
		return nil
	}
	for _, f := range []struct {
		name  string
		rules func(string) []string
	}{
		{g.Name, validation.IsDNS1123Subdomain},
		{g.Namespace, validation.IsDNS1123Label},
		{g.SectionName, validation.IsDNS1123Subdomain},
	} {
		if errs := f.rules(f.name); f.name != "" && len(errs) > 0 {
			return errors.New(because(errs))
		}
	}
	return nil
}

// because makes a sentence of what a validator of Kubernetes says.
func because(errs []string) string { return strings.Join(errs, ", and ") }

// complete reports what only all sources together can define, and leaves it out when they do not. The companion is of our
// release, unless another is named.
func complete(s *v1alpha1.Settings, r release.Release) []string {
	s.Algorithm.CompanionImage = r.Complete(s.Algorithm.CompanionImage)
	var mistakes []string
	if g := s.Algorithm.Gateway; g != nil && g.Name == "" {
		s.Algorithm.Gateway = nil
		mistakes = append(mistakes, "algorithm.gateway.name: is missing beside the rest of algorithm.gateway: add it, or remove algorithm.gateway")
	}
	if i := s.Database.IssuerRef; i != nil {
		i.Kind = cmp.Or(i.Kind, "ClusterIssuer")
		if i.Name == "" {
			s.Database.IssuerRef = nil
			mistakes = append(mistakes, "database.issuerRef.name: is missing beside the rest of database.issuerRef: add it, or remove database.issuerRef")
		}
	}
	return mistakes
}

// A leaf is one field with its path.
type leaf struct {
	path  []string
	value any
}

// leaves of a map in the order of their paths. What is null is not set, and so not among them.
func leaves(m map[string]any, at ...string) []leaf {
	var ls []leaf
	for _, k := range slices.Sorted(maps.Keys(m)) {
		path := append(slices.Clone(at), k)
		if v, ok := m[k].(map[string]any); ok && len(v) > 0 {
			ls = append(ls, leaves(v, path...)...)
			continue
		}
		if m[k] != nil {
			ls = append(ls, leaf{path: path, value: m[k]})
		}
	}
	return ls
}
