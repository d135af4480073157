package main

import (
	"context"
	"net"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// configMaps reads and writes the ConfigMaps of a namespace on connections of its own. Of Kubernetes' kinds it knows
// those of the core alone: a client of all kinds takes five times as long to compile.
type configMaps struct {
	client    *rest.RESTClient
	namespace string
}

func openConfigMaps(kubeconfig, namespace string) (*configMaps, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1
	// With a dialer of its own, a client shares no connection with other nodes of the same process.
	config.Dial = (&net.Dialer{}).DialContext
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &configMaps{client, namespace}, nil
}

func (c *configMaps) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	err := c.client.Get().Namespace(c.namespace).Resource("configmaps").Name(name).Do(ctx).Into(found)
	return found, err
}

func (c *configMaps) create(ctx context.Context, made *corev1.ConfigMap) error {
	return c.client.Post().Namespace(c.namespace).Resource("configmaps").Body(made).Do(ctx).Error()
}

func (c *configMaps) update(ctx context.Context, changed *corev1.ConfigMap) error {
	request := c.client.Put().Namespace(c.namespace).Resource("configmaps").Name(changed.Name)
	return request.Body(changed).Do(ctx).Error()
}
