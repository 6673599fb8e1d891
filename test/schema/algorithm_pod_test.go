// SPDX-License-Identifier: Apache-2.0

package schema

// podAccepted are Algorithms with containers, volumes and metadata of their own.
func podAccepted() map[string]map[string]any {
	objects := map[string]map[string]any{}
	for name, text := range map[string]string{
		"PodEmpty":   `pod: {}`,
		"PodSidecar": `pod: {containers: [{name: s, image: i, args: [a], securityContext: {readOnlyRootFilesystem: true, privileged: false}, resources: {limits: {memory: 1Gi}}}]}`,
		"PodInit":    `pod: {initContainers: [{name: s, image: i, volumeMounts: [{name: v, mountPath: /a}]}], volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}]}`,
		"PodMount":   `{pod: {volumes: [{name: v, configMap: {name: c}}]}, volumeMounts: [{name: v, mountPath: /a, subPath: b/..c, readOnly: true}]}`,
		"PodLabels":  `podMetadata: {labels: {sidecar.istio.io/inject: "true", team: ""}, annotations: {prometheus.io/scrape: "true"}}`,
	} {
		objects[name] = smallest(spec(text))
	}
	return objects
}

// podRefused are Algorithms with mistakes in them.
func podRefused() map[string]refused {
	const (
		restricted    = "pods run under the Pod Security Standard restricted"
		containerName = "must be lower case letters, digits and '-', with a letter or digit at both ends, and not algorithm, model or warm-up, " +
			"which Capstan uses"
		volumeName = "must be lower case letters, digits and '-', with a letter or digit at both ends, and not config, shared-memory, model, " +
			"model-credentials, warm-up or secret-…, which Capstan uses"
		reference = "must be an image reference: letters, digits and any of . _ - / : @ +"
		folder    = "must be an absolute path without ':', other than / and /dev/shm"
		inside    = "must be a relative path without the segment .."
		selects   = "keys must not begin with capstan.dev/ or be app.kubernetes.io/name, app.kubernetes.io/managed-by or pod-template-hash: " +
			"Capstan and Kubernetes select pods by them"
	)
	pod := func(text string) map[string]any { return smallest(spec(`pod: {` + text + `}`)) }
	cases := map[string]refused{
		"PodVolumeOfCapstan": {
			reason: "A pod has each name once.",
			object: pod(`volumes: [{name: secret-a, emptyDir: {}}]`),
			want:   []string{`spec.pod.volumes[0].name: Invalid value: "secret-a": ` + volumeName},
		},
		"PodVolumeTwice": {
			reason: "A pod has each name once.",
			object: pod(`volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]`),
			want:   []string{`spec.pod.volumes[1]: Duplicate value: {"name":"v"}`},
		},
		"PodMountOverRoot": {
			reason: "Nothing of the image would be left.",
			object: smallest(spec(`volumeMounts: [{name: v, mountPath: /}]`)),
			want:   []string{`spec.volumeMounts[0].mountPath: Invalid value: "/": ` + folder},
		},
		"PodMountOutside": {
			reason: "A volume has nothing above it.",
			object: smallest(spec(`volumeMounts: [{name: v, mountPath: /a, subPath: a/../..}]`)),
			want:   []string{`spec.volumeMounts[0].subPath: Invalid value: "a/../..": ` + inside},
		},
		"PodLabelOfCapstan": {
			reason: "Services select pods by it.",
			object: smallest(spec(`podMetadata: {labels: {capstan.dev/slot: b}}`)),
			want:   []string{`spec.podMetadata.labels: Invalid value: ` + selects},
		},
		"PodLabelKey": {
			reason: "Kubernetes has no such label.",
			object: smallest(spec(`podMetadata: {labels: {"a b": c}}`)),
			want:   []string{`spec.podMetadata.labels: Invalid value: keys must be label keys, for instance example.org/team`},
		},
		"PodLabelValue": {
			reason: "Kubernetes has no such label.",
			object: smallest(spec(`podMetadata: {labels: {a: "b c"}}`)),
			want: []string{`spec.podMetadata.labels[a]: Invalid value: "b c": must be the value of a label: letters, digits, '-', '_' and '.', ` +
				`with a letter or digit at both ends`},
		},
		"PodAnnotationOfCapstan": {
			reason: "Capstan sets it.",
			object: smallest(spec(`podMetadata: {annotations: {capstan.dev/revision: b}}`)),
			want:   []string{`spec.podMetadata.annotations: Invalid value: keys must not begin with capstan.dev/: Capstan sets those`},
		},
		"PodAnnotationKey": {
			reason: "Kubernetes has no such annotation.",
			object: smallest(spec(`podMetadata: {annotations: {"a b": c}}`)),
			want:   []string{`spec.podMetadata.annotations: Invalid value: keys must be annotation keys, for instance example.org/contact`},
		},
	}
	for _, list := range []string{"initContainers", "containers"} {
		at := "spec.pod." + list + "[0]"
		for name, c := range map[string][3]string{
			"Privileged":  {`securityContext: {privileged: true}`, ".securityContext.privileged", "true: must be false: " + restricted},
			"Escalates":   {`securityContext: {allowPrivilegeEscalation: true}`, ".securityContext.allowPrivilegeEscalation", "true: must be false: " + restricted},
			"MayBeRoot":   {`securityContext: {runAsNonRoot: false}`, ".securityContext.runAsNonRoot", "false: must be true: " + restricted},
			"Root":        {`securityContext: {runAsUser: 0}`, ".securityContext.runAsUser", "0: must be from 1 to 2147483647, which excludes root: " + restricted},
			"NameOfOurs":  {`name: model`, ".name", `"model": ` + containerName},
			"SpaceInName": {`image: "a b"`, ".image", `"a b": ` + reference},
		} {
			container := `name: s, image: i, ` + c[0]
			switch name {
			case "NameOfOurs":
				container = `image: i, ` + c[0]
			case "SpaceInName":
				container = `name: s, ` + c[0]
			}
			cases["Pod"+name+"In"+list] = refused{
				reason: "No pod of an Algorithm can have it.",
				object: pod(list + `: [{` + container + `}]`),
				want:   []string{at + c[1] + ": Invalid value: " + c[2]},
			}
		}
	}
	return cases
}
