#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --output=job-%j.out
#
# A job with one GPU: the script has it, and so does each step.
echo "script: CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-}"
srun printenv CUDA_VISIBLE_DEVICES
