// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// Shapes of what says where a model is.
var (
	shapeURL       = regexp.MustCompile(`^https?://\S+$`)
	shapeS3        = regexp.MustCompile(`^s3://[a-z0-9][-a-z0-9.]+/\S*[^/\s]/?$`)
	shapeRegion    = regexp.MustCompile(`^[a-z0-9-]+$`)
	shapeReference = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64})?$`)
	shapeDigest    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	shapeModel     = regexp.MustCompile(`^[^/:%]{1,256}$`)
	shapeVersion   = regexp.MustCompile(`^[1-9][0-9]*$`)
	shapeAlias     = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	reservedAlias  = regexp.MustCompile(`(?i)^(latest|v[0-9]+)$`)
)

const urlRemedy = "must be a URL that begins with https:// or http://"

func checkModel(s *state) []check.Problem {
	m := s.spec.Model
	if m == nil {
		return nil
	}

	if ps := checkOrigin(m); len(ps) > 0 {
		return ps
	}

	var ps []check.Problem

	switch m.From {
	case v1alpha1.ModelFromRegistry:
		ps = checkRegistryModel(m.Registry)
	case v1alpha1.ModelFromS3:
		ps = checkS3Model(m.S3)
	case v1alpha1.ModelFromOCI:
		ps = slices.Concat(
			required("spec.model.oci.reference", m.OCI.Reference, shapeReference, "must be the reference of an image, best with its digest"),
			check.Among("spec.model.oci.delivery", m.OCI.Delivery, v1alpha1.DeliverImageVolume, v1alpha1.DeliverInitContainer))
	case v1alpha1.ModelFromVolume:
		ps = checkVolumeModel(m)
	}

	if m.Credentials != nil {
		ps = append(ps, check.ObjectName("spec.model.credentials.name", m.Credentials.Name)...)
	}

	return slices.Concat(ps, checkExpected(s), checkCache(s))
}

// checkOrigin that spec.model.from names is the one that is described.
func checkOrigin(m *v1alpha1.Model) []check.Problem {
	origins := []v1alpha1.ModelOrigin{v1alpha1.ModelFromRegistry, v1alpha1.ModelFromS3, v1alpha1.ModelFromOCI, v1alpha1.ModelFromVolume}
	if ps := check.Among("spec.model.from", m.From, origins...); len(ps) > 0 {
		return ps
	}

	var ps []check.Problem

	for i, described := range []bool{m.Registry != nil, m.S3 != nil, m.OCI != nil, m.Volume != nil} {
		switch field := "spec.model." + string(origins[i]); {
		case origins[i] == m.From && !described:
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf("%s: is missing: spec.model.from is %s and needs it", field, m.From)})
		case origins[i] != m.From && described:
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf("%s: is set, and spec.model.from is %s: remove one of the two", field, m.From)})
		}
	}

	return ps
}

// required tells whether a text is empty or has not the shape that it must have.
func required(field, value string, shape *regexp.Regexp, remedy string) []check.Problem {
	if value == "" {
		return []check.Problem{check.Invalid(field, value, remedy)}
	}

	return check.Shaped(field, value, shape, remedy)
}

func checkRegistryModel(r *v1alpha1.RegistryModel) []check.Problem {
	const at = "spec.model.registry"

	ps := slices.Concat(
		required(at+".name", r.Name, shapeModel, "must be the name of a model: at most 256 characters, without / : and %"),
		check.Shaped(at+".version", r.Version, shapeVersion, "must be the number of a version"),
		check.Shaped(at+".endpoint", r.Endpoint, shapeURL, urlRemedy),
		check.Shaped(at+".s3Endpoint", r.S3Endpoint, shapeURL, urlRemedy),
		providerConfig(at+".providerConfigRef", r.ProviderConfigReference),
	)

	if (r.Version == "") == (r.Alias == "") {
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: at + ": must have exactly one of version and alias"})
	}

	for field, alias := range map[string]string{at + ".alias": r.Alias, at + ".liveAlias": r.LiveAlias, at + ".candidateAlias": r.CandidateAlias} {
		if alias != "" && (!shapeAlias.MatchString(alias) || reservedAlias.MatchString(alias)) {
			ps = append(ps, check.Invalid(field, alias, "must be letters, digits, '_' and '-', and neither latest nor v with digits, which the registry reserves"))
		}
	}

	if r.Alias != "" && r.Alias == r.LiveAlias {
		ps = append(ps, check.Invalid(at+".liveAlias", r.LiveAlias, "is the alias that is followed: choose another for what is live"))
	}

	if c := r.CandidateAlias; c != "" && (c == r.Alias || c == r.LiveAlias) {
		ps = append(ps, check.Invalid(at+".candidateAlias", c, "is another alias of this model as well: choose one of its own"))
	}

	slices.SortFunc(ps, func(a, b check.Problem) int { return strings.Compare(a.Message, b.Message) })

	return ps
}

func checkS3Model(m *v1alpha1.S3Model) []check.Problem {
	ps := slices.Concat(
		required("spec.model.s3.uri", m.URI, shapeS3, "must be of the form s3://bucket/prefix"),
		check.Shaped("spec.model.s3.endpoint", m.Endpoint, shapeURL, urlRemedy),
		check.Shaped("spec.model.s3.region", m.Region, shapeRegion, "must be the name of a region, for instance eu-central-1"),
	)

	if strings.Contains(m.URI, "..") {
		ps = append(ps, check.Invalid("spec.model.s3.uri", m.URI, "must not contain '..'"))
	}

	return ps
}

func checkVolumeModel(m *v1alpha1.Model) []check.Problem {
	ps := check.ObjectName("spec.model.volume.claimName", m.Volume.ClaimName)

	if p := m.Volume.Path; path.IsAbs(p) || slices.Contains(strings.Split(p, "/"), "..") {
		ps = append(ps, check.Invalid("spec.model.volume.path", p, "must be relative and without '..'"))
	}

	if m.Credentials != nil {
		ps = append(ps, check.Invalid("spec.model.credentials.name", m.Credentials.Name, "is for what is downloaded, and a volume is not: remove it"))
	}

	return ps
}

// checkExpected digest and size.
func checkExpected(s *state) []check.Problem {
	m := s.spec.Model
	ps := check.Shaped("spec.model.digest", m.Digest, shapeDigest, "must be sha256: and 64 digits or letters from a to f, as companion digest prints it")

	if m.Size != nil && *m.Size < 1 {
		ps = append(ps, check.Invalid("spec.model.size", *m.Size, "must be at least 1"))
	}

	if s.mountsImage() && (m.Digest != "" || m.Size != nil) {
		ps = append(ps, check.Problem{
			Reason:  v1alpha1.ReasonInvalidSpec,
			Message: "spec.model.digest, spec.model.size: an image that the node mounts is verified by the digest in spec.model.oci.reference: put it there, or set delivery: InitContainer",
		})
	}

	return ps
}

func checkCache(s *state) []check.Problem {
	m := s.spec.Model
	if m.Cache == nil {
		return nil
	}

	if !downloads(m) {
		return []check.Problem{{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.model.cache: is for models that are downloaded: " +
			"a volume needs none, and an image that the node mounts is cached there: remove it"}}
	}

	ps := check.Among("spec.model.cache.accessMode", m.Cache.AccessMode, corev1.ReadWriteMany, corev1.ReadWriteOnce)

	switch q := m.Cache.Size; {
	case q == nil:
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.model.cache.size: is missing: set it, for instance 20Gi"})
	case q.Cmp(leastMemory) < 0:
		ps = append(ps, check.Invalid("spec.model.cache.size", q.String(), memoryRemedy))
	}

	if m.Cache.StorageClassName != "" {
		ps = append(ps, check.ObjectName("spec.model.cache.storageClassName", m.Cache.StorageClassName)...)
	}

	return append(ps, checkClaim(s)...)
}

// checkClaim for what a claim that exists does not change. The schema refuses a
// change, and not that a cache is removed and comes back another.
func checkClaim(s *state) []check.Problem {
	o := s.Observed[nameModelCache]
	if o == nil {
		return nil
	}

	var ps []check.Problem

	const remedy = "the volume that exists has %q, and keeps it: set that, or delete PersistentVolumeClaim %q once no replica mounts it"

	cache, claim := s.spec.Model.Cache, compose.Map(o.Map(), "spec")

	if class := compose.Text(claim, "storageClassName"); cache.StorageClassName != "" && class != "" && class != cache.StorageClassName {
		ps = append(ps, check.Invalid("spec.model.cache.storageClassName", cache.StorageClassName, fmt.Sprintf(remedy, class, s.cacheClaim())))
	}

	if modes := compose.List(claim, "accessModes"); len(modes) == 1 && modes[0] != string(cache.AccessMode) {
		ps = append(ps, check.Invalid("spec.model.cache.accessMode", string(cache.AccessMode), fmt.Sprintf(remedy, modes[0], s.cacheClaim())))
	}

	return ps
}

// providerConfig that a field names.
func providerConfig(field string, ref *xpv2.ProviderConfigReference) []check.Problem {
	if ref == nil {
		return nil
	}

	return append(check.Among(field+".kind", ref.Kind, "ProviderConfig", "ClusterProviderConfig"), check.ObjectName(field+".name", ref.Name)...)
}
