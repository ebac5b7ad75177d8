# SPDX-License-Identifier: Apache-2.0
#
# The files by which loaders find the drivers of native hosts. The layer is for whoever asks for it by a variable.

hosts_text_nvidia.icd = libnvidia-opencl.so.1
hosts_text_nvidia_icd.json = {"file_format_version": "1.0.0", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.3.0"}}
hosts_text_10_nvidia.json = {"file_format_version": "1.0.0", "ICD": {"library_path": "libEGL_nvidia.so.0"}}
hosts_text_nvidia_layers.json = {"file_format_version": "1.0.0", "layer": {"name": "VK_LAYER_NV_optimus", "type": "INSTANCE", \
	"library_path": "libGLX_nvidia.so.0", "api_version": "1.3.0", "implementation_version": "1", "description": "NVIDIA Optimus layer", \
	"enable_environment": {"__NV_PRIME_RENDER_OFFLOAD": "1"}, "disable_environment": {"DISABLE_LAYER_NV_OPTIMUS_1": ""}}}
