# tuner for a machine without a GPU, by a user who is not root. Scripts that you do not trust, without a network:
#
#   docker build -t tuner .
#   docker run --rm --network none --read-only --tmpfs /tmp --tmpfs /results --cap-drop ALL --security-opt no-new-privileges \
#     -v "$PWD":/work:ro tuner apply script.mlir matmul.mlir
#
# The results database goes with the container. To keep it: -v tuner-results:/results in place of --tmpfs /results
FROM python:3.13-slim-trixie
RUN useradd --create-home tuner && mkdir /results && chown tuner /results
COPY . /source
RUN pip install --no-cache-dir /source && rm -rf /source
USER tuner
WORKDIR /work
ENV TUNER_DB=sqlite:////results/tuner.db
ENTRYPOINT ["tuner"]
